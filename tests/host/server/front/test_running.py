from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import websockets

from tartlet.errors import ConfigError
from tartlet.progress import Progress, silent
from tartlet.server.front.in_process import open_in_process
from tartlet.server.front.running import blobs_folder, run_server
from tartlet.server.front.storage import open_storage
from tartlet.server.sandboxes import Sandboxes
from tartlet.server.settings import Settings
from tartlet.testing import FakeEngine
from tests.host.server.front.conftest import ENDLESS

pytestmark = pytest.mark.runner


class Running:
    """A server on a port of its own, in this process."""

    def __init__(self, **settings: Any) -> None:
        self.engine = FakeEngine()
        self._settings = Settings(**{"port": 0, **settings})
        self._listening: asyncio.Future[tuple[str, str | None]] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> tuple[str, str | None]:
        """Start it and wait until it listens. Gives its URL, and the operator's key if it has just been made."""
        self.task = asyncio.create_task(run_server(self._settings, self._open, silent, self._announce))
        await asyncio.wait({self.task, self._listening}, return_when=asyncio.FIRST_COMPLETED)
        if self.task.done():
            self._listening.cancel()
            self.task.result()
        return self._listening.result()

    async def stop(self) -> None:
        """Send a signal, and wait for the end."""
        assert self.task is not None
        if not self.task.done():
            os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(self.task, 60)
        self.engine.check_integrity()
        self.engine.close()

    @asynccontextmanager
    async def _open(self, settings: Settings, progress: Progress) -> AsyncIterator[Sandboxes]:
        async with open_in_process(engine=self.engine, spares=0) as opened:
            yield opened

    def _announce(self, url: str, first_key: str | None) -> None:
        self._listening.set_result((url, first_key))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("runners", "components"):
        (tmp_path / name).symlink_to((own_home / name).resolve())
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    running = Running(drain_s=0.2)
    yield running
    await running.stop()


@pytest.fixture
async def client(running: Running) -> AsyncIterator[httpx2.AsyncClient]:
    url, key = await running.start()
    async with httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30) as client:
        yield client


async def upload(client: httpx2.AsyncClient, text: str, name: str) -> None:
    headers = {"Content-Type": "text/x-python"}
    response = await client.post("/v1/inferlets", params={"name": name}, content=text, headers=headers)
    assert response.status_code == 201, response.text


async def until_none_lives(client: httpx2.AsyncClient) -> None:
    while (await client.get("/v1/runs?status=running")).json()["data"]:
        await asyncio.sleep(0.02)


async def test_the_first_start_makes_a_key(running: Running) -> None:
    """It is told once, and good for everything; what was uploaded is there at the next start."""
    url, key = await running.start()
    async with httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}) as client:
        await upload(client, ENDLESS, "endless")
        assert (await client.get("/metrics")).status_code == 200
    await running.stop()
    again = Running()
    url, second_key = await again.start()
    assert second_key is None
    async with httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}) as client:
        assert (await client.get("/v1/inferlets/endless")).status_code == 200
    await again.stop()


async def test_what_no_tenant_has_goes_at_the_start() -> None:
    """Files that a front that died has left."""
    (blobs_folder() / "upload-x").write_bytes(b"half")
    running = Running()
    await running.start()
    assert [*blobs_folder().iterdir()] == []
    await running.stop()


async def test_a_run_whose_front_has_died_has_an_end(running: Running) -> None:
    """The next start gives it one."""
    async with open_storage() as storage:
        await storage.runs.start("run_old", "default", "0" * 64, "old")
    url, key = await running.start()
    async with httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}) as client:
        run = (await client.get("/v1/runs/run_old")).json()

    assert (run["status"], run["error"]["code"]) == ("failed", "worker_lost")


async def test_a_signal_drains(client: httpx2.AsyncClient, running: Running) -> None:
    """Not ready at once; what does not end in time is told why, and is on record."""
    await upload(client, ENDLESS, "endless")
    events = []
    async with client.stream("POST", "/v1/inferlets/endless/runs", json={"stream": True}) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line.removeprefix("data: ")))
                if events[-1]["type"] == "output":
                    os.kill(os.getpid(), signal.SIGTERM)
                    while (await client.get("/health/ready")).status_code == 200:
                        await asyncio.sleep(0)
    assert running.task is not None
    await asyncio.wait_for(running.task, 60)

    assert events[-1]["type"] == "finished"
    assert "shut down" in events[-1]["run"]["error"]["message"]


async def test_a_client_that_vanishes(client: httpx2.AsyncClient) -> None:
    """Over a real connection, waiting or streaming: its run ends."""
    await upload(client, ENDLESS, "endless")
    for body in ({}, {"stream": True}):
        request = asyncio.create_task(client.post("/v1/inferlets/endless/runs", json=body))
        while not (await client.get("/v1/runs?status=running")).json()["data"]:
            await asyncio.sleep(0.02)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        await until_none_lives(client)


async def test_a_session(client: httpx2.AsyncClient) -> None:
    """By a real client for WebSockets; when it vanishes the run goes on, if it is detached."""
    await upload(client, ENDLESS, "endless")
    run = (await client.post("/v1/inferlets/endless/runs", json={"wait": False})).json()
    address = f"{str(client.base_url).replace('http', 'ws').rstrip('/')}/v1/runs/{run['id']}/session"
    headers = {"Authorization": client.headers["Authorization"]}
    async with websockets.connect(address, additional_headers=headers) as session:
        assert json.loads(await session.recv())["type"] == "started"
    assert (await client.get(f"/v1/runs/{run['id']}")).json()["status"] == "running"
    async with websockets.connect(address, additional_headers=headers) as session:
        await session.send('{"type": "cancel"}')
        types = [json.loads(message)["type"] async for message in session]
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(address)

    assert types[-1] == "finished"
    assert refused.value.response.status_code == 401


async def test_a_port_that_is_taken() -> None:
    """The error says so, and what to do. The first key is left for a start at which it can be shown."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        running = Running(port=other.getsockname()[1])
        with pytest.raises(ConfigError, match=r"cannot listen on .*: Address already in use"):
            await running.start()
    running.engine.close()
    again = Running()
    _, first_key = await again.start()
    await again.stop()
    assert first_key is not None


async def test_a_second_server_on_a_database_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it loads anything."""
    server = Running()
    monkeypatch.setattr(server, "_open", None)
    async with open_storage() as storage:
        await storage.become_front()
        with pytest.raises(ConfigError, match="another server uses the database"):
            await server.start()
    server.engine.close()
