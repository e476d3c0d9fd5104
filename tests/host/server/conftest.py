"""Stored programs, sandboxes without a model, and a worker's service in this process."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tartlet import paths
from tartlet.errors import EngineStoppedError, RunCancelledError
from tartlet.host import Host
from tartlet.server.front.in_process import open_in_process
from tartlet.server.front.processes.worker_link import WorkerLink
from tartlet.server.host_sandboxes import HostSandboxes
from tartlet.server.requests import ProgramRef, SourceFile
from tartlet.server.sandboxes import Sandboxes
from tartlet.server.worker.connection import Connection
from tartlet.server.worker.messages import MOST_BYTES, ToFront, ToWorker
from tartlet.server.worker.service import WorkerService
from tartlet.testing import FakeEngine

StoreSource = Callable[[str], ProgramRef]
StoreComponent = Callable[[bytes], ProgramRef]


@pytest.fixture
async def sandboxes() -> AsyncIterator[Sandboxes]:
    """Sandboxes in this process, on an engine without a model."""
    engine = FakeEngine()
    async with open_in_process(engine=engine, spares=0) as opened:
        yield opened
    engine.check_integrity()
    engine.close()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def store_source() -> StoreSource:
    """Writes the text of an inferlet to where the front keeps its own."""

    def store(text: str) -> ProgramRef:
        return _store(msgspec.json.encode(SourceFile("main", {"main.py": text})), "source")

    return store


@pytest.fixture
def store_component() -> StoreComponent:
    """Writes a component to where the front keeps its own."""
    return lambda component: _store(component, "component")


def _store(data: bytes, kind: str) -> ProgramRef:
    digest = hashlib.sha256(data).hexdigest()
    path = paths.folder("endpoints") / digest
    path.write_bytes(data)
    return ProgramRef(digest, str(path), "source" if kind == "source" else "component", "acme/program")


class ServedLink(WorkerLink):
    """A link to a service in this process, and the engines that the service can find, by their sockets."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.engines: dict[str, FakeEngine] = {}
        self.lost: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)  # set to lose the way to an engine

    async def attach(self, engine: int) -> FakeEngine:
        """Give the service a new engine, and wait until it can run programs there."""
        self.engines[str(engine)] = FakeEngine(token_delay_s=0.001)
        self.use_engine(engine, Path(str(engine)))
        async with asyncio.timeout(60):
            while self.engine != engine:
                await asyncio.sleep(0.001)
        return self.engines[str(engine)]


@pytest.fixture
async def link() -> AsyncIterator[ServedLink]:
    """A link to a service that has no engine yet. Closed, nothing is left in any engine."""
    ours, theirs = socket.socketpair()
    connection = await Connection.open(ours, ToFront, MOST_BYTES)
    link = ServedLink(connection)

    @asynccontextmanager
    async def open_sandboxes(path: str) -> AsyncIterator[HostSandboxes]:
        if path not in link.engines:
            raise EngineStoppedError("nobody listens there")
        async with Host(engine=link.engines[path], spares=0) as host:
            link.lost[path].clear()
            yield HostSandboxes(host, link.lost[path])

    async def serve() -> None:
        connection = await Connection.open(theirs, ToWorker, MOST_BYTES)
        service = WorkerService(connection, open_sandboxes)
        serving = asyncio.create_task(service.serve())
        await connection.serve(service.handle)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    tasks = [asyncio.create_task(connection.serve(link.handle)), asyncio.create_task(serve())]
    yield link
    connection.close()
    await asyncio.wait_for(asyncio.gather(*tasks), 60)
    link.lose(RunCancelledError("the test is over"))
    for engine in link.engines.values():
        engine.check_integrity()
        engine.close()
