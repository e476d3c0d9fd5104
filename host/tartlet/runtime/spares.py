"""Runner fibers that have started and wait for a program, so that a run of source begins at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from tartlet.errors import RunCancelledError
from tartlet.runtime.run_state import RunState
from tartlet.wasm.executor import Executor
from tartlet.wasm.fiber import Fiber, FiberLimits
from tartlet.wasm.host_function import SUSPEND
from tartlet.wasm.linker import LinkedComponent

logger = logging.getLogger(__name__)

_REFILL_DELAY_NS = 2_000_000  # the run that took a spare comes first
_START_MEMORY_BYTES = 32 << 20
_START_LIMITS = FiberLimits(memory_bytes=_START_MEMORY_BYTES, cpu_ns=5_000_000_000, host_calls=10_000)


class Spare:
    """A runner that starts, or is parked in `source.program`. It is its fiber's state until a run takes its place."""

    def __init__(self, executor: Executor, linked: LinkedComponent, on_change: Callable[[Spare], None]) -> None:
        self.is_parked = False
        self.has_ended = False
        self._on_change = on_change
        self.fiber = Fiber(executor, linked, limits=_START_LIMITS, state=self, on_end=self._end)

    def start(self) -> None:
        """Let the runner run until it asks for a program."""
        self.fiber.start("run", "")

    def take_program(self) -> object:
        """Park the fiber: the program comes later."""
        self.is_parked = True
        self._on_change(self)
        return SUSPEND

    def give_to(self, run: RunState) -> None:
        """Make the fiber the run's, and let it go on with the run's program."""
        run.begin(self.fiber)
        self.fiber.resume(run.take_program())

    def print(self, text: str) -> None:
        """What a runner prints before it has a program concerns nobody."""

    def log(self, log: object) -> None:
        """As `print`."""

    def _end(self, result: Any) -> None:
        self.has_ended = True
        if not isinstance(result, RunCancelledError):
            logger.warning("a spare runner ended before it was given a program: %s", result)
        self._on_change(self)


class Spares:
    """Keep `size` parked runners. Lives on the executor's thread."""

    def __init__(self, executor: Executor, linked: LinkedComponent, size: int) -> None:
        self.num_taken = 0
        self.num_missed = 0
        self._executor = executor
        self._linked = linked
        self._size = size
        self._parked: list[Spare] = []
        self._starting: Spare | None = None
        self._is_closed = False
        self._is_refill_due = False

    @property
    def num_parked(self) -> int:
        """Runners that are ready."""
        return len(self._parked)

    def take(self, max_memory_bytes: int | None) -> Spare | None:
        """A parked runner, if there is one and the run may have as much memory as it may already use."""
        self.refill_soon()
        fits = max_memory_bytes is None or max_memory_bytes >= _START_MEMORY_BYTES
        if not self._parked or not fits:
            self.num_missed += 1
            return None
        self.num_taken += 1
        return self._parked.pop()

    def refill_soon(self) -> None:
        """Start what is missing, one after the other, a little later."""
        if not self._is_refill_due and not self._is_closed:
            self._is_refill_due = True
            self._executor.at(time.monotonic_ns() + _REFILL_DELAY_NS, self._refill)

    def close(self) -> None:
        """End all of them."""
        self._is_closed = True
        starting = [self._starting] if self._starting else []
        for spare in [*self._parked, *starting]:
            spare.fiber.end(RunCancelledError("the host is closing"))

    def _refill(self) -> None:
        self._is_refill_due = False
        if self._starting is None and len(self._parked) < self._size and not self._is_closed:
            self._starting = Spare(self._executor, self._linked, self._change)
            self._starting.start()

    def _change(self, spare: Spare) -> None:
        """A spare has parked, or has ended without a run."""
        if spare is self._starting:
            self._starting = None
        if spare.has_ended:
            if spare in self._parked:
                self._parked.remove(spare)
        else:
            self._parked.append(spare)
            self.refill_soon()
