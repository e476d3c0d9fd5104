"""Programs in the front's own process, for development: one process to start, and to debug."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tartlet.server.sandboxes import Sandboxes


@asynccontextmanager
async def open_in_process(**host_settings: Any) -> AsyncIterator[Sandboxes]:
    """Open a `tartlet.Host` with these settings, to run programs here."""
    from tartlet.host import Host
    from tartlet.server.host_sandboxes import HostSandboxes

    async with Host(**host_settings) as host:
        yield HostSandboxes(host)
