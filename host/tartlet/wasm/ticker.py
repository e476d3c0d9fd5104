"""The epoch ticker: lets time pass for running guests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

TICK_SECONDS = 0.001
LONGEST_TICK_SECONDS = 0.008
"""While ticks find nobody busy, each comes after twice the time of the one before. A tick takes a core from a thread of
the model, for 60 us with cold caches; a program that reads every token is busy for a moment every few milliseconds."""
_IDLE_TICKS_BEFORE_PARKING = 8


class Busy(Protocol):
    """Something that may have guests to run."""

    is_busy: bool


class EpochTicker:
    """Calls `advance` every millisecond while any executor is busy, then less often; after a while its thread sleeps.

    Thread: any. An executor sets `is_busy`, then calls `wake` if `is_parked`; in this order, so that no wake-up is
    lost.
    """

    def __init__(self, advance: Callable[[], None]) -> None:
        self._advance = advance
        self._executors: set[Busy] = set()
        self._lock = threading.Lock()
        self._wake_up = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_parked = False

    def add(self, executor: Busy) -> None:
        """Take an executor into account, until `remove`."""
        with self._lock:
            self._executors = self._executors | {executor}
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tartlet-epochs", daemon=True)
                self._thread.start()

    def remove(self, executor: Busy) -> None:
        """Forget an executor; the thread ends with the last one."""
        with self._lock:
            self._executors = self._executors - {executor}
            thread = None
            if not self._executors:
                thread, self._thread = self._thread, None
                self._wake_up.set()
        if thread is not None:
            thread.join()

    def wake(self) -> None:
        """Start ticking again."""
        self._wake_up.set()

    def _run(self) -> None:
        idle_ticks = 0
        while self._executors:
            time.sleep(min(TICK_SECONDS * (1 << idle_ticks), LONGEST_TICK_SECONDS))
            self._advance()
            idle_ticks = 0 if self._is_any_busy() else idle_ticks + 1
            if idle_ticks > _IDLE_TICKS_BEFORE_PARKING:
                self._park()
                idle_ticks = 0

    def _park(self) -> None:
        self._wake_up.clear()
        self.is_parked = True
        if self._executors and not self._is_any_busy():
            self._wake_up.wait()
        self.is_parked = False

    def _is_any_busy(self) -> bool:
        return any(executor.is_busy for executor in self._executors)
