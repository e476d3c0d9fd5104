"""What the program of a fiber holds, and what it may do, whether it is a run's own or a controller in it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tartlet.errors import RunError, TartletError
from tartlet.events import Log
from tartlet.limits import Limits
from tartlet.runtime.counters import Counters
from tartlet.runtime.engine_link import EngineLink
from tartlet.runtime.event_table import EventTable
from tartlet.runtime.handles import HandleTable
from tartlet.runtime.variables import Variables
from tartlet.wasm.executor import Executor
from tartlet.wasm.fiber import Fiber, Status
from tartlet.wasm.host_function import SUSPEND, Err
from tartlet_engine.api import Command

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that a run works with."""

    executor: Executor
    link: EngineLink
    workers: ThreadPoolExecutor
    """For what takes long on the host's side, such as the tokens of a big text."""


class GuestFiber(Protocol):
    """A fiber that carries a program, as the bindings see it."""

    @property
    def state(self) -> GuestState:
        """What its program holds."""
        ...


class GuestState(ABC):
    """What a program holds and may do, and the fiber that it runs on. Lives on the executor's thread.

    Args:
        services: What all runs share.
        engine_id: The run, as the engine knows it.
        run_id: The run's public id.
        inferlet: The program's name.
        tenant: On whose behalf it runs.
        limits: What it may use.
        seed: What its random choices come from, 0 <= seed < 2**64.
        program: For a language runner: the JSON that `source.program` gives.
        counters: Where what it uses is counted.
    """

    variables: Variables
    """Those of the run."""

    def __init__(
        self,
        services: Services,
        *,
        engine_id: int,
        run_id: str,
        inferlet: str,
        tenant: str,
        limits: Limits,
        seed: int,
        program: str | None,
        counters: Counters,
    ) -> None:
        self.services = services
        self.link = services.link
        self.engine_id = engine_id
        self.run_id = run_id
        self.inferlet = inferlet
        self.tenant = tenant
        self.limits = limits
        self.seed = seed
        self.counters = counters
        self.num_masks = 0
        self.handles = HandleTable(limits.max_handles)
        self.events = EventTable(self.handles, services.executor, self.complete)
        self._program = program
        self._random = random.Random(seed)
        self._fiber: Fiber | None = None

    @property
    def run(self) -> GuestState:
        """Itself: engine events that name what it holds are its own."""
        return self

    @property
    def cpu_ns(self) -> int:
        """CPU time that its fiber has used."""
        return self._fiber.cpu_ns if self._fiber else 0

    def hold(self) -> None:
        """Let the program not go on after the host call that it is in."""
        if self._fiber is not None:
            self._fiber.hold()

    def release(self) -> None:
        """Let a program go on that was held."""
        if self._fiber is not None:
            self._fiber.release()

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

    def take_program(self) -> str:
        """The program that the runner asks for. Raises RunError if this is no program of a runner."""
        if self._program is None:
            raise RunError("the program was already taken")
        program, self._program = self._program, None
        return program

    def draw_seed(self) -> int:
        """A seed for a generation that was given none."""
        return self._random.getrandbits(64)

    def limits_in_use(self) -> list[tuple[str, int, int | None]]:
        """Name (the field of `Limits`), use and allowance of each limit whose use is known, and is the run's.

        Not that of memory, which the guest knows, and not those of one generation or answer.
        """
        limits, counters, fiber = self.limits, self.counters, self._fiber
        assert fiber is not None
        return [
            ("max_cpu_ms", self.total_cpu_ns // 1_000_000, limits.max_cpu_ms),
            ("max_wall_ms", counters.wall_ns // 1_000_000, limits.max_wall_ms),
            ("max_step_ms", counters.longest_step_ns // 1_000_000, limits.max_step_ms),
            ("max_tokens", counters.generated_tokens, limits.max_tokens),
            ("max_kv_pages", self.num_pages, limits.max_kv_pages),
            ("max_handles", len(self.handles), limits.max_handles),
            ("max_output_bytes", counters.output_bytes, limits.max_output_bytes),
            ("max_controllers", self.num_controllers, limits.max_controllers),
            ("max_variables", len(self.variables), limits.max_variables),
            ("max_variable_bytes", self.variables.num_bytes, limits.max_variable_bytes),
            ("max_host_calls", fiber.num_host_calls, limits.max_host_calls),
        ]

    @property
    @abstractmethod
    def total_cpu_ns(self) -> int:
        """CPU time that the whole run has used."""

    @property
    @abstractmethod
    def num_controllers(self) -> int:
        """Controllers of the whole run."""

    @property
    @abstractmethod
    def num_pages(self) -> int:
        """KV pages of the whole run."""

    @abstractmethod
    def submit(self, command: Command) -> None:
        """Send the engine a command of the run at the end of this turn.

        The program is held after this host call if the engine has too many that it has not carried out.
        """

    @abstractmethod
    def print(self, text: str) -> None:
        """Add output text. Raises LimitExceededError."""

    @abstractmethod
    def log(self, log: Log) -> None:
        """Add a log line. Raises LimitExceededError."""
