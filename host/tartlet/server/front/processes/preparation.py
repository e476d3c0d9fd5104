"""What must be there before the first worker is started: the runner for Python source."""

from __future__ import annotations

import asyncio
import os

from tartlet.errors import BuildError
from tartlet.runner import is_runner_there
from tartlet.server.front.processes.child import Child
from tartlet.server.front.processes.environment import worker_environment

_PATIENCE_S = 1.0


class Preparation:
    """Builds the runner in a child, if it does not come along and has not been built yet; once for all workers."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def done(self) -> None:
        """Wait until the runner is there. Raises BuildError; whoever asks then lets it be tried again."""
        async with self._lock:
            if not await asyncio.to_thread(is_runner_there):
                await _build()


async def _build() -> None:
    child = await Child.start("runner", "tartlet.server.worker.prepare", [], environment=worker_environment(os.environ))
    try:
        await child.wait()
    finally:
        await child.stop(_PATIENCE_S)
    if child.status != 0:
        raise BuildError(f"the process that builds the runner for Python source {child.end}")
