"""How long to wait before a child that has ended is started again."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Waits twice as long each time, up to a most; at random, so that many do not start at once.

    Args:
        first_s: The first wait, at most; it is at least half of that.
        most_s: The longest wait.
        steady_s: Who has lived that long is well, and begins anew.
        draw: Gives a number from 0 to 1.
    """

    def __init__(
        self,
        first_s: float = 0.2,
        most_s: float = 30.0,
        steady_s: float = 60.0,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._steady_s = steady_s
        self._draw = draw
        self._next_s = first_s

    def wait_s(self, lived_s: float) -> float:
        """Seconds to wait, now that a child has ended that lived so long."""
        if lived_s >= self._steady_s:
            self._next_s = self._first_s
        longest_s = self._next_s
        self._next_s = min(2 * self._next_s, self._most_s)
        return longest_s * (0.5 + 0.5 * self._draw())
