"""One run as the host keeps it, from its start to its only end. Lives on the executor's thread."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tartlet.errors import LimitExceededError, RunError, TartletError
from tartlet.events import Log, RunUsage, Variable
from tartlet.limits import Limits
from tartlet.runtime.channel import Channel, Outcome
from tartlet.runtime.context import ContextState
from tartlet.runtime.counters import EVENT_BYTES, Counters
from tartlet.runtime.engine_link import EngineLink
from tartlet.runtime.event_table import EventTable, Timer
from tartlet.runtime.handles import HandleTable
from tartlet.runtime.outcome import read_outcome
from tartlet.runtime.pacing import Pacing
from tartlet.runtime.variables import Variables
from tartlet.wasm.executor import Executor
from tartlet.wasm.fiber import Fiber, FiberLimits, Status
from tartlet.wasm.host_function import SUSPEND, Err
from tartlet_engine.api import CloseRun, Command, Event, LimitReached, OpenRun

T = TypeVar("T")

_ENGINE_LIMITS = {
    "generated_tokens": ("token_budget", "max_tokens"),
    "kv_pages": ("kv_limit", "max_kv_pages"),
}


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that a run works with."""

    executor: Executor
    link: EngineLink
    workers: ThreadPoolExecutor
    """For what takes long on the host's side, such as the tokens of a big text."""


class RunFiber(Protocol):
    """A fiber that carries a run, as the bindings see it."""

    @property
    def state(self) -> RunState:
        """The run."""
        ...


class RunState:
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
        on_finish: Callable[[RunState], None],
    ) -> None:
        self.services = services
        self.link = services.link
        self.run_id = run_id
        self.engine_id = self.link.new_id()
        self.inferlet = inferlet
        self.tenant = tenant
        self._weight = weight
        self.limits = limits
        self.seed = seed
        self._program = program
        self.counters = Counters(limits.max_output_bytes)
        self.handles = HandleTable(limits.max_handles)
        self.events = EventTable(self.handles, services.executor, self.complete)
        self.variables = Variables(self.events, limits, self.tell_variable)
        self.num_masks = 0
        self._random = random.Random(seed)
        self._pacing = Pacing(self.link, self)
        self._channel = channel
        self._on_finish = on_finish
        self._fiber: Fiber | None = None
        self._wall_timer: Timer | None = None
        self._has_finished = False

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
            first_token_ms=None if first_ns is None else first_ns / 1e6,
            tokens_per_second=counters.tokens_per_second,
            cpu_ms=(fiber.cpu_ns if fiber else 0) / 1e6,
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
        run = OpenRun(self.engine_id, self.tenant, limits.max_tokens, limits.max_kv_pages, self._weight)
        self.submit(run)
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
        self._finish(read_outcome(result, self.limits))

    def _finish(self, outcome: Outcome) -> None:
        self._has_finished = True
        if self._wall_timer is not None:
            self._wall_timer.cancel()
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
        """Let the program not go on after the host call that it is in."""
        if self._fiber is not None:
            self._fiber.hold()

    def release(self) -> None:
        """Let a program go on that was held."""
        if self._fiber is not None:
            self._fiber.release()

    # ---- The suspended host call ----

    def complete(self, action: Callable[[], object]) -> None:
        """Complete the suspended call with what `action` returns or raises; it may also go on being suspended."""
        fiber = self._fiber
        if fiber is None or fiber.status is not Status.SUSPENDED:  # it has ended meanwhile
            return
        try:
            value = action()
        except Err as refused:
            fiber.resume_error(refused)
        except TartletError as error:
            fiber.end(error)
        else:
            if value is not SUSPEND:
                fiber.resume(value)

    def call_in_worker(self, work: Callable[[], T], then: Callable[[T], object]) -> object:
        """Suspend the fiber, do `work` on another thread, then complete the call with `then(its result)`."""
        future = self.services.workers.submit(work)
        future.add_done_callback(
            lambda done: self.services.executor.post(lambda: self.complete(lambda: then(done.result())))
        )
        return SUSPEND

    def wake(self) -> None:
        """End the wait of the fiber if something that it waits for is ready."""
        self.events.wake()

    # ---- What the bindings need ----

    def take_program(self) -> str:
        """The program that the runner asks for. Raises RunError if this is no run of a runner."""
        if self._program is None:
            raise RunError("the program was already taken")
        program, self._program = self._program, None
        return program

    def limits_in_use(self) -> list[tuple[str, int, int | None]]:
        """Name (the field of `Limits`), use and allowance of each limit whose use is known: not that of memory."""
        limits, counters, fiber = self.limits, self.counters, self._fiber
        assert fiber is not None
        num_pages = sum(context.num_own_pages for context in self.handles.all(ContextState))
        return [
            ("max_cpu_ms", fiber.cpu_ns // 1_000_000, limits.max_cpu_ms),
            ("max_wall_ms", counters.wall_ns // 1_000_000, limits.max_wall_ms),
            ("max_step_ms", counters.longest_step_ns // 1_000_000, limits.max_step_ms),
            ("max_tokens", counters.generated_tokens, limits.max_tokens),
            ("max_kv_pages", num_pages, limits.max_kv_pages),
            ("max_handles", len(self.handles), limits.max_handles),
            ("max_output_bytes", counters.output_bytes, limits.max_output_bytes),
            ("max_variables", len(self.variables), limits.max_variables),
            ("max_variable_bytes", self.variables.num_bytes, limits.max_variable_bytes),
            ("max_host_calls", fiber.num_host_calls, limits.max_host_calls),
        ]

    def draw_seed(self) -> int:
        """A seed for a generation that was given none."""
        return self._random.getrandbits(64)

    def print(self, text: str) -> None:
        """Add output text. Raises LimitExceededError."""
        self.counters.add_output(len(text.encode()))
        if text:
            self._channel.put_text(text)

    def log(self, log: Log) -> None:
        """Add a log line. Raises LimitExceededError."""
        self.counters.add_output(len(log.message.encode()) + EVENT_BYTES)
        self._channel.put(log)

    def tell_variable(self, variable: Variable, size: int) -> None:
        """Tell the caller of a variable that is written, of so many bytes. Raises LimitExceededError."""
        self.counters.add_output(size + EVENT_BYTES)
        self._channel.put(variable)

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that the engine has reached one of the run's limits."""
        if isinstance(event, LimitReached):
            code, limit = _ENGINE_LIMITS[event.limit]
            self.end(LimitExceededError(code, limit=limit, used=event.used, allowed=event.allowed))

    def _exceed_wall_time(self) -> None:
        used, allowed = self.counters.wall_ns // 1_000_000, self.limits.max_wall_ms
        assert allowed is not None
        self.end(LimitExceededError("deadline_exceeded", limit="max_wall_ms", used=used, allowed=allowed))
