"""Starts runs, keeps track of them, and ends them all when the host closes or the engine is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tartlet.errors import ConfigError, EngineStoppedError, RunCancelledError, TartletError
from tartlet.runtime.engine_link import EngineLink
from tartlet.runtime.guest_state import Services
from tartlet.runtime.prefixes import Prefixes
from tartlet.runtime.program import Program
from tartlet.runtime.run_state import RunState
from tartlet.runtime.spares import Spares
from tartlet.runtime.tenant_requests import TenantRequests
from tartlet.wasm.executor import Executor
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.linker import LinkedComponent
from tartlet.wasm.wasm_engine import WasmEngine
from tartlet_engine.api import Command, EngineClient, EngineError, Event, OpenRun

_NUM_WORKERS = 2


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many runs there are and have been, and how they got their runners."""

    live: int
    started: int
    stores: int
    """Instances in memory: of runs and of parked runners."""
    spares_parked: int
    spares_taken: int
    spares_missed: int
    """Run of source that found no spare, and started a runner of their own."""


class Supervisor:
    """The runs of one host, on one executor, with one engine.

    Thread: any, but for what says otherwise. The engine stays the owner's to close. Raises ConfigError if another host
    uses it.
    """

    def __init__(self, wasm_engine: WasmEngine, client: EngineClient) -> None:
        self.executor = Executor(wasm_engine)
        try:
            link = EngineLink(client, self.executor, self._stop)
        except RuntimeError as error:
            self.executor.close()
            hint = "Close that host first, or give each host an engine of its own."
            raise ConfigError(f"the engine serves another host: {error}", hint=hint) from None
        self._workers = ThreadPoolExecutor(_NUM_WORKERS, thread_name_prefix="tartlet-worker")
        self.services = Services(self.executor, link, self._workers)
        self._prefixes = Prefixes(link)
        self._requests = TenantRequests(link)
        self._runs: set[RunState] = set()  # on the executor's thread
        self._num_started = 0
        self._spares: dict[LinkedComponent, Spares] = {}  # by the runner: each language has its own
        self._stopped: EngineStoppedError | None = None
        self._is_closing = False
        self._closing_lock = threading.Lock()  # nothing is posted after `_close_all`, where it would be lost

    def keep_spares(self, runner: LinkedComponent, size: int) -> None:
        """Begin to keep so many of a runner parked, for runs of its language's source."""

        def keep() -> None:
            if runner not in self._spares and size and not self._is_closing:
                self._spares[runner] = Spares(self.executor, runner, size)
                self._spares[runner].refill_soon()

        self.executor.post(keep)

    def start(self, run: RunState, program: Program, input_json: str) -> None:
        """Begin a run. It ends at once if the engine is gone or the host is closing."""
        self.executor.post(lambda: self._start(run, program, input_json))

    def end(self, run: RunState, error: TartletError) -> None:
        """End a run with an error, whatever it is doing. No effect if it has ended."""
        self.executor.post(lambda: run.end(error))

    def forget(self, run: RunState) -> None:
        """Note that a run has ended. On the executor's thread."""
        self._runs.discard(run)

    def publish_prefix(self, token_ids: Sequence[int], adapter: str | None) -> Future[int]:
        """Let the engine compute and keep a prefix; the future's result is its number, or a TartletError raised."""
        future: Future[int] = Future()
        with self._closing_lock:
            if self._is_closing:
                future.set_exception(_closing())
            else:
                self.executor.post(lambda: self._publish_prefix(token_ids, adapter, future))
        return future

    def ask(self, tenant: str, weight: float, command: Callable[[int, int], Command]) -> Future[Event]:
        """Let the engine carry out one command on behalf of a tenant; the future's result is its answer.

        Args:
            tenant: Whose.
            weight: The tenant's, which stays as it is.
            command: Makes the command, out of an operation's id and a run's.
        """
        future: Future[Event] = Future()
        link = self.services.link
        run, operation_id = OpenRun(link.new_id(), tenant, weight=weight), link.new_id()

        def begin() -> None:
            if self._stopped is not None:
                future.set_exception(self._stopped)
            else:
                self._requests.begin(run, operation_id, command(operation_id, run.run_id), future)

        with self._closing_lock:
            if self._is_closing:
                future.set_exception(_closing())
            else:
                self.executor.post(begin)
        return future

    def unpublish_prefix(self, prefix_id: int) -> None:
        """Let go of a prefix. Raises ConfigError if there is none of this number."""
        self._prefixes.give_up(prefix_id)
        self.executor.post(lambda: self._prefixes.unpublish(prefix_id))

    def call_export(self, linked: LinkedComponent, export: str, args: tuple[Any, ...], **options: Any) -> Future[Any]:
        """Call an export on a fiber that is no run; the future's result is the lifted one, or a TartletError."""
        future: Future[Any] = Future()

        def start() -> None:
            Fiber(self.executor, linked, on_end=future.set_result, **options).start(export, *args)

        with self._closing_lock:
            if self._is_closing:
                future.set_result(_closing())
            else:
                self.executor.post(lambda: _forward_errors(future, start))
        return future

    def counts(self) -> RunCounts:
        """How many runs there are."""
        spares = list(self._spares.values())
        return RunCounts(
            live=len(self._runs),
            started=self._num_started,
            stores=self.executor.num_fibers,
            spares_parked=sum(each.num_parked for each in spares),
            spares_taken=sum(each.num_taken for each in spares),
            spares_missed=sum(each.num_missed for each in spares),
        )

    def close(self) -> None:
        """End all runs as cancelled and frees what they hold; returns when the engine has been told."""
        with self._closing_lock:
            self._is_closing = True
            self.executor.post(self._close_all)
        self.executor.close()  # returns when every fiber has ended
        self.services.link.close()
        self._workers.shutdown()

    # ---- On the executor's thread ----

    def _start(self, run: RunState, program: Program, input_json: str) -> None:
        self._num_started += 1
        self._runs.add(run)
        if self._stopped is not None:
            run.end(self._stopped)
            return
        if self._is_closing:
            run.end(_closing())
            return
        assert program.linked is not None
        spares = self._spares.get(program.linked) if program.kind == "source" else None
        spare = None if spares is None else spares.take(run.limits.max_memory_bytes)
        if spare is not None:
            spare.give_to(run)
        else:
            fiber = Fiber(self.executor, program.linked)
            run.begin(fiber)
            fiber.start("run", input_json)

    def _publish_prefix(self, token_ids: Sequence[int], adapter: str | None, future: Future[int]) -> None:
        if self._stopped is not None:
            future.set_exception(self._stopped)
        else:
            self._prefixes.publish(token_ids, adapter, future)

    def _stop(self, error: EngineError) -> None:
        """The engine is gone, and with it everything that the runs wait for."""
        self._stopped = EngineStoppedError(error.message, hint=error.hint)
        self._prefixes.stop(self._stopped)
        self._requests.close(self._stopped)
        for run in list(self._runs):
            run.end(self._stopped)

    def _close_all(self) -> None:
        for spares in self._spares.values():
            spares.close()
        self._prefixes.close()
        self._requests.close(_closing())
        for run in list(self._runs):
            run.end(_closing())


def _closing() -> RunCancelledError:
    return RunCancelledError("the host is closing")


def _forward_errors(future: Future[Any], start: Callable[[], None]) -> None:
    try:
        start()
    except TartletError as error:
        future.set_result(error)
