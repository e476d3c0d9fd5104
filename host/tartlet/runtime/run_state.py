"""One run as the host keeps it, from its start to its only end. Lives on the executor's thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from tartlet.errors import LimitExceededError, ProgramError, TartletError
from tartlet.events import Log, RunUsage, Variable
from tartlet.limits import Limits
from tartlet.runtime.channel import Channel, Outcome
from tartlet.runtime.context import ContextState
from tartlet.runtime.counters import EVENT_BYTES, Counters
from tartlet.runtime.event_table import Timer
from tartlet.runtime.guest_state import GuestState, Services
from tartlet.runtime.outcome import read_outcome
from tartlet.runtime.pacing import Pacing
from tartlet.runtime.program import Program
from tartlet.runtime.refusal import refusal
from tartlet.runtime.variables import Variables
from tartlet.wasm.fiber import Fiber, FiberLimits
from tartlet_engine.api import CloseRun, Command, ErrorCode, Event, LimitReached, OpenRun, PagesHeld

if TYPE_CHECKING:
    from tartlet.runtime.controlled import ControlledGeneration
    from tartlet.runtime.controller import ControllerState

_ENGINE_LIMITS = {
    "generated_tokens": ("token_budget", "max_tokens"),
    "kv_pages": ("kv_limit", "max_kv_pages"),
}


def no_controller(name: str) -> Program:
    """Find no controller, whatever the name."""
    raise ProgramError(f"there is no controller {name!r}: the host knows none", code="not_found")


class RunFiber(Protocol):
    """A fiber that carries a run, as the bindings see it."""

    @property
    def state(self) -> RunState:
        """The run."""
        ...


class RunState(GuestState):
    """What a run holds and has used, and the fiber that it is.

    However it ends, `_finish` runs once: it frees everything here and in the engine, and gives the caller the outcome.

    Args:
        services: What all runs share.
        channel: The way to the caller.
        run_id: The public id.
        inferlet: The program's name.
        tenant: On whose behalf it runs.
        weight: The tenant's, from now on.
        limits: What it may use.
        seed: What its random choices come from, 0 <= seed < 2**64.
        program: For a language runner: the JSON that `source.program` gives.
        find_controller: Gives the program of a controller by its name, or raises ProgramError; not on the executor's
            thread, as it may take long.
        on_finish: Called once, when all is freed.
    """

    def __init__(
        self,
        services: Services,
        channel: Channel,
        *,
        run_id: str,
        inferlet: str,
        tenant: str,
        weight: float = 1.0,
        limits: Limits,
        seed: int,
        program: str | None,
        find_controller: Callable[[str], Program] = no_controller,
        on_finish: Callable[[RunState], None],
    ) -> None:
        super().__init__(
            services,
            engine_id=services.link.new_id(),
            run_id=run_id,
            inferlet=inferlet,
            tenant=tenant,
            limits=limits,
            seed=seed,
            program=program,
            counters=Counters(limits.max_output_bytes),
        )
        self.find_controller = find_controller
        self.variables = Variables(limits, self.tell_variable)
        self.controlled: dict[ControlledGeneration, None] = {}  # those that are not over, in the order of their starts
        self.events.can_others_go_on = self._can_others_go_on
        self._controllers: set[ControllerState] = set()
        self._ended_cpu_ns = 0  # of controllers that have ended
        self._weight = weight
        self._pacing = Pacing(self.link, self)
        self._channel = channel
        self._on_finish = on_finish
        self._wall_timer: Timer | None = None
        self._has_finished = False
        self._last_error = (-1, "")  # what it logged, and how many host calls it had made then

    @property
    def run(self) -> RunState:
        """Itself: engine events that name the run are its own."""
        return self

    @property
    def usage(self) -> RunUsage:
        """What it has used so far. From any thread."""
        counters, fiber = self.counters, self._fiber
        first_ns = counters.first_token_ns
        return RunUsage(
            prompt_tokens=counters.prompt_tokens,
            cached_tokens=counters.cached_tokens,
            generated_tokens=counters.generated_tokens,
            shared_pages=counters.shared_pages,
            page_seconds=counters.page_ns / 1e9,
            first_token_ms=None if first_ns is None else first_ns / 1e6,
            tokens_per_second=counters.tokens_per_second,
            cpu_ms=self.total_cpu_ns / 1e6,
            wall_ms=counters.wall_ns / 1e6,
            host_calls=fiber.num_host_calls if fiber else 0,
            output_bytes=counters.output_bytes,
            generations=counters.generations,
            forks=counters.forks,
        )

    # ---- Begin and end ----

    def begin(self, fiber: Fiber) -> None:
        """Take a fiber, set its limits, and tell the engine. The fiber is not started or resumed by this."""
        limits = self.limits
        self._fiber = fiber
        fiber.state, fiber.on_end, fiber.wasi_output = self, self.on_fiber_end, self.print
        fiber.cpu_ns = fiber.num_host_calls = 0  # a spare's start is not the run's
        fiber.limits = FiberLimits(
            memory_bytes=limits.max_memory_bytes,
            cpu_ns=None if limits.max_cpu_ms is None else limits.max_cpu_ms * 1_000_000,
            host_calls=limits.max_host_calls,
        )
        self.link.register(self.engine_id, self)
        pages, weight = limits.max_kv_pages, self._weight
        self.submit(OpenRun(self.engine_id, self.tenant, limits.max_tokens, pages, weight, self.run_id))
        if limits.max_wall_ms is not None:
            deadline_ns = self.counters.started_ns + limits.max_wall_ms * 1_000_000
            self._wall_timer = self.services.executor.at(deadline_ns, self._exceed_wall_time)

    def end(self, error: TartletError) -> None:
        """End the run with an error, whatever it is doing. No effect if it has ended."""
        if self._has_finished:
            return
        if self._fiber is None:
            self._finish(error)
        else:
            self._fiber.end(error)

    def on_fiber_end(self, result: Any) -> None:
        """Take in the fiber's end: what `run` returned, lifted, or an error."""
        calls, message = self._last_error
        is_last = self._fiber is not None and self._fiber.num_host_calls == calls
        self._finish(read_outcome(result, self.limits, message if is_last else None))

    def _finish(self, outcome: Outcome) -> None:
        self._has_finished = True
        if self._wall_timer is not None:
            self._wall_timer.cancel()
        for controlled in list(self.controlled):
            controlled.forget()
        if self._fiber is not None:
            self.link.catch_up()
            self.link.submit(CloseRun(self.engine_id), self.engine_id)
            self.link.flush()  # before the caller hears of the end
        self.events.clear()
        self.link.unregister_run(self)
        self.handles.clear()
        self.variables.clear()
        self.counters.ended_ns = time.monotonic_ns()
        self._on_finish(self)
        self._channel.close(self.usage, outcome)

    # ---- The engine ----

    def submit(self, command: Command) -> None:
        """Send the engine a command of this run at the end of this turn.

        The program is held after this host call if the engine has too many that it has not carried out.
        """
        self._pacing.submit(command)

    def hold(self) -> None:
        """Let no program of the run go on after the host call that it is in."""
        super().hold()
        for controller in self._controllers:
            controller.hold()

    def release(self) -> None:
        """Let programs go on that were held."""
        super().release()
        for controller in self._controllers:
            controller.release()

    # ---- Controllers ----

    def add_controller(self, controller: ControllerState) -> None:
        """Take in a controller that is about to start."""
        self._controllers.add(controller)

    def forget_controller(self, controller: ControllerState) -> None:
        """Take in that a controller has ended."""
        self._controllers.discard(controller)
        self._ended_cpu_ns += controller.cpu_ns

    def check_controllers(self) -> None:
        """Raise a refusal if the run has as many controllers as it may."""
        used, allowed = len(self._controllers) + 1, self.limits.max_controllers
        if allowed is not None and used > allowed:
            message = f"max_controllers allows {allowed:,}, this would make it {used:,}"
            raise refusal(ErrorCode.QUOTA_EXCEEDED, message, "Wait for a generation with a controller to end.")

    def share_cpu(self) -> None:
        """Let each program of the run use what the others have left of its CPU time."""
        max_cpu_ms = self.limits.max_cpu_ms
        if max_cpu_ms is None:
            return
        left_ns = max_cpu_ms * 1_000_000 - self.total_cpu_ns
        if self._fiber is not None:
            self._fiber.allow_cpu(self._fiber.cpu_ns + left_ns)
        for controller in self._controllers:
            controller.allow_cpu(controller.cpu_ns + left_ns)

    def _can_others_go_on(self) -> bool:
        """Whether anything but the run's program will do something. If all else waits for that, it is ended now."""
        if any(controlled.can_go_on for controlled in self.controlled):
            return True
        for controlled in self.controlled:
            controlled.end_as_deadlock()
        return bool(self.controlled)

    @property
    def total_cpu_ns(self) -> int:
        """CPU time that it has used, with its controllers."""
        return self.cpu_ns + self._ended_cpu_ns + sum(controller.cpu_ns for controller in list(self._controllers))

    @property
    def num_controllers(self) -> int:
        """Controllers that have not ended."""
        return len(self._controllers)

    @property
    def num_pages(self) -> int:
        """KV pages that its contexts need, a shared one counted once."""
        num_controlled = sum(controlled.num_own_pages for controlled in self.controlled)
        return num_controlled + sum(context.num_own_pages for context in self.handles.all(ContextState))

    # ---- What the bindings need ----

    def print(self, text: str) -> None:
        """Add output text. Raises LimitExceededError."""
        self.counters.add_output(len(text.encode()))
        if text:
            self._channel.put_text(text)

    def log(self, log: Log) -> None:
        """Add a log line. Raises LimitExceededError."""
        self.counters.add_output(len(log.message.encode()) + EVENT_BYTES)
        self._channel.put(log)
        if log.level == "error" and self._fiber is not None:
            self._last_error = self._fiber.num_host_calls, log.message

    def tell_variable(self, variable: Variable, size: int) -> None:
        """Tell the caller of a variable that is written, of so many bytes. Raises LimitExceededError."""
        self.counters.add_output(size + EVENT_BYTES)
        self._channel.put(variable)

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that the run holds other pages than before, or has reached one of its limits."""
        if isinstance(event, PagesHeld):
            self.counters.note_pages(event)
        elif isinstance(event, LimitReached):
            code, limit = _ENGINE_LIMITS[event.limit]
            self.end(LimitExceededError(code, limit=limit, used=event.used, allowed=event.allowed))

    def _exceed_wall_time(self) -> None:
        used, allowed = self.counters.wall_ns // 1_000_000, self.limits.max_wall_ms
        assert allowed is not None
        self.end(LimitExceededError("deadline_exceeded", limit="max_wall_ms", used=used, allowed=allowed))
