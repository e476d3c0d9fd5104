"""A controller: a program in an instance of its own, which the host calls once a step and which answers in time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tartlet.errors import LimitExceededError, RunCancelledError, TartletError
from tartlet.events import Log
from tartlet.runtime.event_table import Timer
from tartlet.runtime.guest_state import GuestState
from tartlet.runtime.program import Program
from tartlet.wasm.fiber import Fiber, FiberLimits
from tartlet_engine.api import Command, EngineError, ErrorCode

if TYPE_CHECKING:
    from tartlet.runtime.run_state import RunState

MOST_LOG_CHARACTERS = 4000
"""Of what it has told last, in the error that ends it."""


class ControllerState(GuestState):
    """One controller of a run. Lives on the executor's thread.

    Its CPU time is the run's; its memory is limited as the run's is, by itself.

    Args:
        run: The run that it belongs to.
        program: What it runs.
        on_failure: Told once, when it has failed or was too late; not if it is closed.
        on_news: Called when an event of its own may have become ready.
    """

    def __init__(
        self,
        run: RunState,
        program: Program,
        on_failure: Callable[[EngineError], object],
        on_news: Callable[[], object],
    ) -> None:
        super().__init__(
            run.services,
            engine_id=run.engine_id,
            run_id=run.run_id,
            inferlet=program.name,
            tenant=run.tenant,
            limits=run.limits,
            seed=run.draw_seed(),
            program=program.runner_json("null"),
            counters=run.counters,
        )
        self.variables = run.variables
        self.events.on_timer = self.wake
        self.events.can_others_go_on = lambda: True
        self._run = run
        self._on_failure = on_failure
        self._on_news = on_news
        self._told: deque[str] = deque()  # its last texts
        self._num_told = 0  # characters of them
        self._then: Callable[[Any], object] | None = None  # takes the result of the call in progress
        self._late_timer: Timer | None = None
        self._lateness: EngineError | None = None
        self._is_closed = False
        limits = run.limits
        assert program.controller is not None
        self._fiber = Fiber(
            run.services.executor,
            program.controller,
            limits=FiberLimits(memory_bytes=limits.max_memory_bytes, host_calls=limits.max_host_calls),
            state=self,
            on_end=self._take_end,
            on_return=self._take_result,
        )
        self._fiber.wasi_output = self.print
        self._is_new = True

    @property
    def is_busy(self) -> bool:
        """Whether a call is in progress."""
        return self._then is not None

    @property
    def total_cpu_ns(self) -> int:
        """CPU time that the whole run has used."""
        return self._run.total_cpu_ns

    @property
    def num_controllers(self) -> int:
        """Controllers of the run, this one too."""
        return self._run.num_controllers

    @property
    def num_pages(self) -> int:
        """KV pages of the whole run."""
        return self._run.num_pages

    def call(self, export: str, *args: Any, then: Callable[[Any], object]) -> None:
        """Call an export, one at a time; `then` gets what it returns, unless that is an error. No effect if closed."""
        if self._is_closed:
            return
        assert self._fiber is not None
        self._then = then
        limit_ms = self.limits.max_step_ms
        if limit_ms is not None:
            deadline_ns = time.monotonic_ns() + limit_ms * 1_000_000
            self._late_timer = self.services.executor.at(deadline_ns, self._be_late)
        self._run.share_cpu()
        if self._is_new:
            self._is_new = False
            self._fiber.start(export, *args)
        else:
            self._fiber.call(export, *args)

    def fail(self, message: str) -> None:
        """End it as failed: what it has answered makes no sense."""
        self._fail(ErrorCode.PROGRAM_FAILED, message)

    def close(self) -> None:
        """End it; nobody is told."""
        self._is_closed = True
        assert self._fiber is not None
        self._fiber.end(RunCancelledError("the controller's generation is over"))

    def submit(self, command: Command) -> None:
        """Send the engine a command of the run at the end of this turn."""
        self._run.submit(command)

    def allow_cpu(self, cpu_ns: int) -> None:
        """Limit its CPU time to so much in all."""
        assert self._fiber is not None
        self._fiber.allow_cpu(cpu_ns)

    def wake(self) -> None:
        """Take in that an event of its own may have become ready."""
        super().wake()
        self._on_news()

    def print(self, text: str) -> None:
        """Add to the run's output. Raises LimitExceededError."""
        self._tell(text)
        self._run.print(text)

    def log(self, log: Log) -> None:
        """Add a line to the run's log. Raises LimitExceededError."""
        self._tell(f"{log.level} {log.message}\n")
        self._run.log(log)

    # ---- How calls and the instance end ----

    def _take_result(self, result: tuple[bool, Any]) -> None:
        then, self._then = self._then, None
        self._cancel_timer()
        self._run.share_cpu()
        is_ok, value = result
        if self._is_closed:
            return
        if not is_ok:
            self._fail(ErrorCode.PROGRAM_FAILED, str(value).rstrip() or "it did not say why")
        elif then is not None:
            then(value)

    def _be_late(self) -> None:
        """End it, since its answer has not come in time."""
        self._late_timer = None
        limit_ms = self.limits.max_step_ms
        self._lateness = self._error(
            ErrorCode.DEADLINE_EXCEEDED,
            f"it has not answered for {limit_ms:,} ms; max_step_ms allows no more",
        )
        assert self._fiber is not None
        self._fiber.end(RunCancelledError("the controller is late"))

    def _take_end(self, outcome: Any) -> None:
        self._then = None
        self._cancel_timer()
        self._run.forget_controller(self)
        self.events.clear()
        self.link.unregister_run(self)
        self.handles.clear()
        if self._is_closed:
            return
        if self._lateness is not None:
            self._is_closed = True
            self._on_failure(self._lateness)
        elif isinstance(outcome, LimitExceededError) and outcome.code != "memory_limit":
            self._is_closed = True
            self._run.end(outcome)
        else:
            message = outcome.message if isinstance(outcome, TartletError) else str(outcome)
            self._fail(ErrorCode.PROGRAM_FAILED, message)

    def _fail(self, code: ErrorCode, message: str) -> None:
        error = self._error(code, message)
        self.close()
        self._on_failure(error)

    def _error(self, code: ErrorCode, message: str) -> EngineError:
        text = f"the controller {self.inferlet!r} failed: {message}"
        if told := "".join(self._told)[-MOST_LOG_CHARACTERS:].rstrip():
            text += f"\nIts log ends with:\n{told}"
        return EngineError(code, text)

    def _tell(self, text: str) -> None:
        """Remember what it has told last."""
        self._told.append(text[-MOST_LOG_CHARACTERS:])
        self._num_told += len(self._told[-1])
        while self._num_told - len(self._told[0]) >= MOST_LOG_CHARACTERS:
            self._num_told -= len(self._told.popleft())

    def _cancel_timer(self) -> None:
        if self._late_timer is not None:
            self._late_timer.cancel()
            self._late_timer = None
