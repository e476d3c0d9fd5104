"""Programs in worker processes: the front's way to run them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tartlet.errors import ConfigError, UnavailableError
from tartlet.server.front.processes.backoff import Backoff
from tartlet.server.front.processes.engine_child import EngineChild
from tartlet.server.front.processes.keeping import keep_going
from tartlet.server.front.processes.remote_run import RemoteRun
from tartlet.server.front.processes.worker_child import WorkerChild
from tartlet.server.front.processes.worker_link import WorkerLink
from tartlet.server.requests import RunRequest
from tartlet_engine.api import EngineStats, ModelInfo

_LOOK_S = 0.05


class WorkerPool:
    """Implements `Sandboxes`. A run is started by the worker that has the fewest, and stays there."""

    def __init__(self, engine: EngineChild, workers: Sequence[WorkerChild]) -> None:
        self._engine = engine
        self._workers = workers
        self._lives: list[asyncio.Task[None]] = []

    def open(self) -> None:
        """Start all processes, and keep them going until `close`. Comes back at once."""
        children: list[EngineChild | WorkerChild] = [self._engine, *self._workers]
        for child in children:
            self._lives.append(asyncio.create_task(keep_going(child.name, child.live, Backoff())))

    async def started(self) -> None:
        """See `Sandboxes`. It is tried again, more and more rarely."""
        while self._engine.current is None:
            if self._engine.refusal is not None:
                raise ConfigError(f"the engine {self._engine.refusal}")
            await asyncio.sleep(_LOOK_S)

    @property
    def models(self) -> Sequence[ModelInfo]:
        """See `Sandboxes`."""
        return self._engine.models

    @property
    def is_ready(self) -> bool:
        """See `Sandboxes`."""
        return self._engine.makes_progress and any(worker.usable_link is not None for worker in self._workers)

    @property
    def pids(self) -> list[int | None]:
        """The process ids of the engine and of the workers, in this order; None while there is none."""
        return [self._engine.pid, *(worker.pid for worker in self._workers)]

    async def start(self, request: RunRequest) -> RemoteRun:
        """See `Sandboxes`. Whatever goes wrong after this is the run's."""
        return self._least_loaded().start(request)

    async def engine_stats(self) -> EngineStats | None:
        """See `Sandboxes`."""
        return await self._engine.stats()

    async def close(self) -> None:
        """See `Sandboxes`."""
        lives, self._lives = self._lives, []
        for ending in (lives[1:], lives[:1]):  # the engine last: what runs held is given back
            for life in ending:
                life.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    def _least_loaded(self) -> WorkerLink:
        links = [link for worker in self._workers if (link := worker.usable_link) is not None]
        if not links:
            raise UnavailableError(
                "there is no process that could run a program now", hint="They are started again: ask a little later."
            )
        return min(links, key=lambda link: link.num_runs)
