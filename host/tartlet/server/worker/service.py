"""Serves the front: programs are run on the engine that it names, one host for each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from tartlet.errors import EngineStoppedError, RunCancelledError, RunError, TartletError
from tartlet.events import RunUsage
from tartlet.server.failures import Failure
from tartlet.server.host_sandboxes import HostRun, HostSandboxes
from tartlet.server.requests import RunRequest
from tartlet.server.worker.connection import Connection
from tartlet.server.worker.messages import (
    BEAT_S,
    Attached,
    Beat,
    Cancel,
    Ended,
    Start,
    ToWorker,
    UseEngine,
)
from tartlet.server.worker.outlet import Outlet, bounded_failure, checked_result

logger = logging.getLogger(__name__)

_RETRY_S = 1.0

OpenSandboxes = Callable[[str], AbstractAsyncContextManager[HostSandboxes]]
"""Opens a host on the engine whose socket that is. Raises EngineStoppedError if nobody is there."""


class WorkerService:
    """What a worker does for the front. `handle` is called with each of its messages, on the loop."""

    def __init__(self, connection: Connection, open_sandboxes: OpenSandboxes) -> None:
        self._connection = connection
        self._open_sandboxes = open_sandboxes
        self._sandboxes: HostSandboxes | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}  # of runs, by number
        self._runs: dict[int, HostRun] = {}  # those that have begun
        self._engine: UseEngine | None = None
        self._has_new_engine = asyncio.Event()

    def handle(self, message: ToWorker) -> None:
        """Take in a message."""
        match message:
            case UseEngine():
                self._engine = message
                self._has_new_engine.set()
            case Start(number, request, grant):
                self._begin(number, self._run(number, request, grant))
            case Cancel(number):
                if number in self._runs:
                    self._runs[number].cancel()
                elif number in self._tasks:
                    self._tasks[number].cancel()

    async def serve(self) -> None:
        """Serve until this is cancelled; all runs end with it."""
        beats = asyncio.create_task(self._beat())
        try:
            while True:
                await self._has_new_engine.wait()
                self._has_new_engine.clear()
                await self._serve_engine()
        finally:
            beats.cancel()
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(beats, *tasks, return_exceptions=True)

    async def _serve_engine(self) -> None:
        """Serve on the engine named last, until another is named."""
        engine = self._engine
        assert engine is not None
        try:
            async with self._open_sandboxes(engine.socket) as sandboxes:
                self._sandboxes = sandboxes
                try:
                    self._connection.send(Attached(engine.engine))
                    await self._until_lost(sandboxes)
                finally:
                    self._sandboxes = None
        except (OSError, TartletError) as error:
            logger.warning("cannot use engine %d: %s", engine.engine, error)
            await asyncio.sleep(_RETRY_S)
            self._has_new_engine.set()  # the same, unless there is another by now

    async def _until_lost(self, sandboxes: HostSandboxes) -> None:
        """Wait for another engine. Raises EngineStoppedError if the way to this one is lost before: it may be there."""
        ends = [asyncio.create_task(event.wait()) for event in (self._has_new_engine, sandboxes.engine_lost)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        if not self._has_new_engine.is_set():
            self._connection.send(Attached(None))
            raise EngineStoppedError("the connection to it is lost")

    async def _beat(self) -> None:
        told: dict[int, tuple[float, ...]] = {}  # the pages that a run holds cost something while it waits, too
        while True:
            await asyncio.sleep(BEAT_S)
            usages = {number: run.usage for number, run in self._runs.items()}
            figures: dict[int, tuple[float, ...]] = {
                number: (usage.cpu_ms, usage.generated_tokens, usage.page_seconds, usage.host_calls, usage.output_bytes)
                for number, usage in usages.items()
            }
            changed = [number for number in usages if figures[number] != told.get(number)]
            self._connection.send(Beat([(number, usages[number]) for number in changed]))
            told = figures

    # ---- Runs ----

    def _begin(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks[number] = task
        task.add_done_callback(lambda task: self._end(number, task))

    def _end(self, number: int, task: asyncio.Task[None]) -> None:
        """Take in that a run is over. One that was cancelled may not even have begun to do anything."""
        del self._tasks[number]
        if (run := self._runs.pop(number, None)) is not None:
            run.cancel()
        if task.cancelled():
            usage = RunUsage() if run is None else run.usage
            self._connection.send(Ended(number, usage, bounded_failure(RunCancelledError("the run was cancelled"))))

    async def _run(self, number: int, request: RunRequest, grant: bytes) -> None:
        """Run a program to its end, and tell how it went, unless this is cancelled."""
        outcome: str | Failure
        try:
            run = await self._opened().start(request, grant)
            self._runs[number] = run
            await Outlet(self._connection, number).carry(run)
            outcome = checked_result(await run.result_json())
        except TartletError as error:
            outcome = bounded_failure(error)
        except Exception:
            logger.exception("a run could not be carried out")
            outcome = bounded_failure(_internal_error())
        begun = self._runs.get(number)
        self._connection.send(Ended(number, RunUsage() if begun is None else begun.usage, outcome))

    def _opened(self) -> HostSandboxes:
        if self._sandboxes is None:
            raise EngineStoppedError("the engine is gone", hint="Another is started by itself: ask again.")
        return self._sandboxes


def _internal_error() -> RunError:
    return RunError("an error of the server's own; its log says more", code="internal")
