"""For how long the runs of the fake engine hold pages."""

from __future__ import annotations

import time


class PageTime:
    """Pages that a run holds now, and their time so far, as of the last change."""

    def __init__(self) -> None:
        self.num_pages = 0
        self.since_ns = 0
        self.total_ns = 0

    def add(self, num_pages: int) -> None:
        """Note that so many more are held from now on; fewer, if it is negative."""
        now_ns = time.monotonic_ns()
        self.total_ns += self.num_pages * (now_ns - self.since_ns)
        self.num_pages += num_pages
        self.since_ns = now_ns
