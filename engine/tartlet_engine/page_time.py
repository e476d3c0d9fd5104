"""For how long pages of the KV cache are held: pages times nanoseconds."""

from __future__ import annotations

import time


class PageTime:
    """Pages that are held now, and their time so far. Brought up to date when their number changes, not in between."""

    def __init__(self) -> None:
        self.num_pages = 0
        self.since_ns = 0
        """When their number changed last, of `time.monotonic_ns`."""
        self.total_ns = 0
        """Page-nanoseconds up to then."""

    def add(self, num_pages: int) -> None:
        """Note that so many more are held from now on; fewer, if it is negative."""
        now_ns = time.monotonic_ns()
        self.total_ns += self.num_pages * (now_ns - self.since_ns)
        self.num_pages += num_pages
        self.since_ns = now_ns
