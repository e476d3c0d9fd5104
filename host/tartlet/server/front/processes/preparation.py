"""What should be there before the first worker is started: the runners for source, and their native code."""

from __future__ import annotations

import asyncio
import hashlib
import os

from tartlet import paths
from tartlet.errors import BuildError
from tartlet.languages.language import SourceMode
from tartlet.languages.registry import taken_modes
from tartlet.progress import Progress, silent
from tartlet.server.child_environment import worker_environment
from tartlet.server.front.processes.child import Child

_PATIENCE_S = 1.0


class Preparation:
    """Makes it in a child, as far as it has not been made; once for all workers. `progress` hears of it."""

    def __init__(self, progress: Progress = silent) -> None:
        self._progress = progress
        self._lock = asyncio.Lock()

    async def done(self) -> None:
        """Wait until it is there. Raises BuildError; whoever asks then lets it be tried again."""
        async with self._lock:
            if not await asyncio.to_thread(_is_there):
                await _build(self._progress)


def _is_there() -> bool:
    """Whether there are runners, and native code of them; if that is another Wasmtime's, workers compile it anew."""
    return all(map(_is_mode_there, taken_modes()))


def _is_mode_there(mode: SourceMode) -> bool:
    if not mode.is_runner_there():
        return False
    digest = hashlib.sha256(mode.runner_component(silent).read_bytes()).hexdigest()
    return any(paths.components_folder().glob(f"{digest}-*.cwasm"))


async def _build(progress: Progress) -> None:
    child = await Child.start(
        "runner",
        "tartlet.server.worker.prepare",
        [],
        environment=worker_environment(os.environ),
        progress=progress,
    )
    try:
        await child.wait()
    finally:
        await child.stop(_PATIENCE_S)
    if child.status != 0:
        raise BuildError(f"the process that builds the runners for source {child.end}")
