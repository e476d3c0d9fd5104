"""Measures how long forward passes take, whether the device works instead of the host or beside it.

On a device that works beside the host, launching a pass says nothing of how long it takes. What counts is the time
until somebody has waited for what comes of it. Passes that nobody waits for, such as the first chunks of a prompt, are
measured together with the next that somebody does wait for.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tartlet_engine.costs import Costs


class StepTimer:
    """Tells `Costs` of forward passes. On the engine's thread."""

    def __init__(self, costs: Costs, *, is_beside: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """Measure the passes of a device that works beside the host, or else has computed a pass when it returns."""
        self._costs = costs
        self._is_beside = is_beside
        self._clock = clock
        self._began: float | None = None  # of the first pass that nobody has waited for
        self._num_tokens = 0  # of those passes

    def begin(self) -> None:
        """A pass is about to be launched."""
        if self._began is None:
            self._began = self._clock()

    def launched(self, num_tokens: int) -> None:
        """Take note that the pass has been launched, with so many tokens."""
        self._num_tokens += num_tokens
        if not self._is_beside:
            self.waited()

    def waited(self) -> None:
        """Take note that what has been launched is there."""
        if self._began is not None:
            self._costs.note_step(self._num_tokens, self._clock() - self._began)
        self.forget()

    def forget(self) -> None:
        """Measure nothing of what has been launched: it failed, or nobody is left who would wait for it."""
        self._began, self._num_tokens = None, 0
