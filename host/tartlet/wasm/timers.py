"""Timers of one executor: a heap of deadlines."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

Action = Callable[[], object]

_MANY_CANCELLED = 64


class Timer:
    """One action at one time, until it has run or was cancelled."""

    __slots__ = ("_timers", "action", "deadline_ns")

    def __init__(self, timers: Timers, deadline_ns: int, action: Action) -> None:
        self._timers = timers
        self.deadline_ns = deadline_ns
        self.action: Action | None = action

    def cancel(self) -> None:
        """Make sure that the action does not run (any more). Cost: O(1), amortised O(log n)."""
        if self.action is not None:
            self.action = None
            self._timers.note_cancelled()


class Timers:
    """Actions by deadline. Not thread-safe: belongs to one executor's thread."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._serial = itertools.count()  # equal deadlines: first come, first served
        self._num_cancelled = 0
        self.next_deadline_ns: int | None = None  # when `pop_due` has something next, at the earliest

    def __len__(self) -> int:
        return len(self._heap) - self._num_cancelled

    def at(self, deadline_ns: int, action: Action) -> Timer:
        """Run `action` once `time.monotonic_ns()` has reached the deadline."""
        timer = Timer(self, deadline_ns, action)
        heapq.heappush(self._heap, (deadline_ns, next(self._serial), timer))
        self._note_next()
        return timer

    def pop_due(self, now_ns: int) -> Action | None:
        """Take the next action whose time has come."""
        while self._heap and self._heap[0][0] <= now_ns:
            timer = heapq.heappop(self._heap)[2]
            self._note_next()
            if timer.action is not None:
                action, timer.action = timer.action, None
                return action
            self._num_cancelled -= 1
        return None

    def note_cancelled(self) -> None:
        """Sweep cancelled timers out when they are the most: a deadline may be hours away."""
        self._num_cancelled += 1
        if self._num_cancelled > _MANY_CANCELLED and 2 * self._num_cancelled > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].action is not None]
            heapq.heapify(self._heap)
            self._num_cancelled = 0
            self._note_next()

    def _note_next(self) -> None:
        self.next_deadline_ns = self._heap[0][0] if self._heap else None
