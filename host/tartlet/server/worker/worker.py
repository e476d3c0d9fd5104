"""A worker's life: from its connection to the front, until that is closed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tartlet.host import Host
from tartlet.server.engine.socket_client import connect_engine
from tartlet.server.host_sandboxes import HostSandboxes, load_runner
from tartlet.server.worker.connection import Connection
from tartlet.server.worker.messages import MOST_BYTES, ToWorker
from tartlet.server.worker.service import WorkerService


@asynccontextmanager
async def open_on_engine(path: str, num_spares: int) -> AsyncIterator[HostSandboxes]:
    """Open a host on the engine that is served at a socket, which runs programs at once.

    Raises EngineStoppedError if there is none.
    """
    loop, is_lost = asyncio.get_running_loop(), asyncio.Event()

    def lose() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(is_lost.set)

    client = await asyncio.to_thread(connect_engine, Path(path), lose)
    try:
        async with Host(engine=client, spares=num_spares) as host:
            await load_runner(host)
            yield HostSandboxes(host, is_lost, client.show_grant)
    finally:
        await asyncio.to_thread(client.close)


async def work(front: int, *, num_spares: int) -> None:
    """Serve the front at the other end of a socket, an inherited file descriptor, until it closes the connection.

    SIGTERM ends it, too.
    """
    os.set_inheritable(front, False)
    connection = await Connection.open(socket.socket(fileno=front), ToWorker, MOST_BYTES)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, connection.close)
    service = WorkerService(connection, lambda path: open_on_engine(path, num_spares))
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(service.serve())
        await connection.serve(service.handle)
        serving.cancel()
