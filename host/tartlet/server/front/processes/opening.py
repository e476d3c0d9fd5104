"""Starts all processes of a server, and ends them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from tartlet.errors import ConfigError
from tartlet.progress import Progress, silent
from tartlet.server.engine.settings import EngineSettings, FakeSettings
from tartlet.server.front.processes.engine_child import EngineChild
from tartlet.server.front.processes.pool import WorkerPool
from tartlet.server.front.processes.preparation import Preparation
from tartlet.server.front.processes.worker_child import WorkerChild
from tartlet.server.wire.socket_folder import SocketFolder


@asynccontextmanager
async def open_processes(
    *,
    workers: int = 2,
    spares: int = 2,
    fake_engine: bool | FakeSettings = False,
    progress: Progress = silent,
    **engine_settings: Any,
) -> AsyncIterator[WorkerPool]:
    """Start the engine's process and the workers, and keep them going; leaving it ends them all.

    It comes back at once: the pool is ready once the model is loaded.

    Args:
        workers: Processes that run programs.
        spares: Python runners that each keeps ready.
        fake_engine: For tests: a `tartlet.testing.FakeEngine` instead of a model.
        progress: Hears of building the runner, and of fetching and loading the model.
        engine_settings: Arguments of `compose.start_engine`.

    Raises:
        ConfigError: There is no place for sockets, or there is no such setting.
    """
    settings = _engine_settings(fake_engine, engine_settings)
    with SocketFolder() as folder:
        engine = EngineChild(settings, folder.socket_path, progress)
        preparation = Preparation(progress)
        numbers = range(1, workers + 1)
        pool = WorkerPool(engine, [WorkerChild(f"worker {number}", spares, engine, preparation) for number in numbers])
        pool.open()
        try:
            yield pool
        finally:
            await pool.close()


def _engine_settings(fake_engine: bool | FakeSettings, settings: Mapping[str, Any]) -> EngineSettings:
    fake = FakeSettings() if fake_engine is True else fake_engine or None
    plain = {name: _plain(value) for name, value in settings.items()}
    try:
        return msgspec.convert({**plain, "fake": fake}, EngineSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the engine cannot be started with that: {error}") from None


def _plain(value: Any) -> Any:
    """A setting as it can stand on a command line."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return str(value) if isinstance(value, Path) else value
