"""Programs in the front's own process, for development: one process to start, and to debug."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tartlet.server.sandboxes import Sandboxes


@asynccontextmanager
async def open_in_process(*, needs_runner: bool = False, **host_settings: Any) -> AsyncIterator[Sandboxes]:
    """Open a `tartlet.Host` with these settings, to run programs here.

    Args:
        needs_runner: Build the runner for Python source now, if it is not there: who compiles uploads cannot.
        host_settings: As of `Host`.
    """
    from tartlet.host import Host
    from tartlet.server.host_sandboxes import HostSandboxes, load_runner

    async with Host(**host_settings) as host:
        if needs_runner:
            await load_runner(host)
        yield HostSandboxes(host)
