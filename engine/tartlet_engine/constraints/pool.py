"""The threads that follow constraints: first all that is known soon and waited for first, then masks."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

_log = logging.getLogger("tartlet_engine")

Job = Callable[[], None]


class MaskPool:
    """A few threads with two queues. Jobs may not raise. `submit` from any thread."""

    def __init__(self, num_threads: int) -> None:
        """Start that many threads, with the first job."""
        self._num_threads = num_threads
        self._urgent: deque[Job] = deque()
        self._others: deque[Job] = deque()
        self._tickets: SimpleQueue[bool] = SimpleQueue()  # one for each job; False: the end
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, job: Job, *, is_urgent: bool) -> None:
        """Let a thread do it, before all that is not urgent if it is. Cost: 1 us."""
        (self._urgent if is_urgent else self._others).append(job)
        self._tickets.put(True)
        if not self._threads:
            self._start()

    def shutdown(self) -> None:
        """Do what is waiting, and end the threads. Idempotent; what is submitted later is not done."""
        with self._lock:
            threads, self._threads, self._is_closed = self._threads, [], True
        for _ in threads:
            self._tickets.put(False)
        for thread in threads:
            thread.join()

    def _start(self) -> None:
        with self._lock:
            if not (self._threads or self._is_closed):
                names = [f"tartlet-masks_{number}" for number in range(self._num_threads)]
                self._threads = [threading.Thread(target=self._run, name=name, daemon=True) for name in names]
                for thread in self._threads:
                    thread.start()

    def _run(self) -> None:
        while self._tickets.get():
            try:
                job = self._urgent.popleft()
            except IndexError:
                job = self._others.popleft()
            try:
                job()
            except Exception:
                _log.exception("a constraint could not be followed")
