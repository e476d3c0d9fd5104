"""How far set-up work is, in the server's log, where there is no terminal to draw on."""

from __future__ import annotations

import logging
import time

logger = logging.getLogger("tartlet.server")


class LoggedProgress:
    """A `tartlet.progress.Progress` that logs when each task begins, and when it is done. Any thread."""

    def __init__(self) -> None:
        self._begun_s: dict[str, float] = {}

    def __call__(self, task: str, done: float, total: float | None) -> None:
        """Note that `done` of `total` is done."""
        if task not in self._begun_s:
            self._begun_s[task] = time.monotonic()
            if done != total:
                logger.info("begins", extra={"task": task})
        if done == total:
            seconds = time.monotonic() - self._begun_s.pop(task, time.monotonic())
            logger.info("done", extra={"task": task, "seconds": round(seconds, 1)})
