"""One engine process after another: each started, connected, watched; and who is told of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tartlet.errors import EngineStoppedError
from tartlet.progress import Progress, silent
from tartlet.server.child_environment import engine_environment
from tartlet.server.engine.grants import new_key
from tartlet.server.engine.messages import RunTotals
from tartlet.server.engine.probe import EngineProbe
from tartlet.server.engine.settings import CANNOT_START, EngineSettings
from tartlet.server.front.processes.child import Child
from tartlet.server.front.processes.engine_watch import EngineWatch
from tartlet_engine.api import EngineStats, ModelInfo

_CONNECT_S = 0.1
_PATIENCE_S = 20.0
"""It finishes its step, and writes what is being saved."""

_START_PATIENCE_S = 1.0
"""While it loads its model, it has nothing to lose."""


class EngineChild:
    """The place of the engine's process.

    Args:
        settings: What each is started with.
        socket_path: Gives where the engine of a number is served.
        progress: Hears of fetching and loading the model.
    """

    def __init__(
        self, settings: EngineSettings, socket_path: Callable[[str], Path], progress: Progress = silent
    ) -> None:
        self.name = "engine"
        self.pid: int | None = None
        self.models: Sequence[ModelInfo] = ()
        """What the engine serves; empty while there is none."""
        self._settings = settings
        self._socket_path = socket_path
        self._progress = progress
        self._users: list[Callable[[int, Path], None]] = []
        self.key = new_key()
        """With which grants are made that it accepts."""
        self.refusal: str | None = None
        """What the last one has said, if that cannot start with these settings."""
        self._number = 0
        self._watch: EngineWatch | None = None
        self._is_stuck = False
        self._has_served = False

    @property
    def current(self) -> tuple[int, Path] | None:
        """The number and the socket of the engine that can be used."""
        return None if self._watch is None else (self._number, self._path)

    @property
    def makes_progress(self) -> bool:
        """Whether there is an engine, which answers or would if it had something to do."""
        return self._watch is not None and self._watch.makes_progress

    def tell(self, use: Callable[[int, Path], None]) -> None:
        """Tell somebody of each engine that can be used: its number, and its socket."""
        self._users.append(use)

    async def stats(self) -> EngineStats | None:
        """Its counters; None while there is no engine."""
        return None if self._watch is None else await self._watch.stats()

    async def totals(self, names: Sequence[str]) -> dict[str, RunTotals]:
        """What runs had used whose worker is lost, as far as the engine knows soon."""
        return {} if self._watch is None else await self._watch.totals(names)

    async def live(self) -> str:
        """One life: start an engine, and let it be used until it ends. Gives how it ended."""
        self._number += 1
        settings_json = msgspec.json.encode(self._settings).decode()
        with _readable(self.key) as pipe:
            child = await Child.start(
                self.name,
                "tartlet.server.engine",
                [f"--socket={self._path}", f"--settings={settings_json}", f"--key={pipe}"],
                environment=engine_environment(os.environ),
                inherited=[pipe],
                progress=self._progress,
            )
        self._is_stuck = self._has_served = False
        ends = [asyncio.create_task(child.wait()), asyncio.create_task(self._use())]
        try:
            self.pid = child.pid
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
            if self._is_stuck:
                child.kill()
            await child.stop(_PATIENCE_S if self._has_served else _START_PATIENCE_S)
            self.pid = None
            self._path.unlink(missing_ok=True)
        self.refusal = child.end if child.status == CANNOT_START else None
        return f"was stuck and {child.end}" if self._is_stuck else child.end

    @property
    def _path(self) -> Path:
        return self._socket_path(f"engine-{self._number}")

    async def _use(self) -> None:
        """Wait until the engine can be used, which takes as long as its model takes to load, and watch it."""
        probe = await self._connect()
        try:
            self._watch, self.models = EngineWatch(probe), probe.models
            self._has_served = True
            for use in self._users:
                use(self._number, self._path)
            await self._watch.watch()
        finally:
            self._is_stuck = self._watch is not None and self._watch.is_stuck
            self._watch, self.models = None, ()
            await probe.close()

    async def _connect(self) -> EngineProbe:
        while True:
            try:
                return await EngineProbe.connect(self._path)
            except EngineStoppedError:
                await asyncio.sleep(_CONNECT_S)


@contextmanager
def _readable(secret: bytes) -> Iterator[int]:
    """A pipe from which a child can read a secret."""
    reading, writing = os.pipe()
    try:
        with open(writing, "wb") as file:
            file.write(secret)
        yield reading
    finally:
        os.close(reading)
