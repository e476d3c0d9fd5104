"""Asks the engine's thread whether it goes on."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from tartlet_engine.api import Command, Event, Fence

Submit = Callable[[list[Command]], None]


class Pinger:
    """Pings of all connections that have not been answered. From any thread.

    A ping is a fence of a run that does not exist: the engine refuses it, on its own thread, when it comes to it. So
    a ping takes no place among the runs, and needs nobody's share.

    Args:
        submit: To the engine, of no run.
        ids: That are for pings; events with these go to `handle`.
    """

    def __init__(self, submit: Submit, ids: range) -> None:
        self._submit = submit
        self._no_run = ids[0]
        self._ids = itertools.count(ids[1])
        self._answers: dict[int, Callable[[], None]] = {}
        self._lock = threading.Lock()

    def ping(self, answer: Callable[[], None]) -> None:
        """Let the engine's thread call `answer`, soon if it goes on."""
        with self._lock:
            operation_id = next(self._ids)
            self._answers[operation_id] = answer
        self._submit([Fence(operation_id, self._no_run)])

    def handle(self, operation_id: int, event: Event) -> None:
        """Take in that the engine has come to a ping."""
        with self._lock:
            answer = self._answers.pop(operation_id, None)
        if answer is not None:
            answer()
