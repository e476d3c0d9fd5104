"""What a server needs runs out for a while: disk, the database, open files. Nothing that has ended is lost."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.host.server.chaos.conftest import ROOMY, MakeServer
from tests.host.server.chaos.server_process import (
    SOURCE,
    STORY,
    ServerProcess,
    begin,
    ended,
    run_of,
    settled,
    upload,
)

pytestmark = [pytest.mark.runner, pytest.mark.slow]

SHORT = """
import asyncio
from tartlet_sdk import inferlet

@inferlet
async def main(seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    return "done"
"""


@contextmanager
def limited(pid: int, which: int, most: int) -> Iterator[None]:
    """Let a process have no more than that of something."""
    soft, hard = resource.prlimit(pid, which)
    resource.prlimit(pid, which, (most, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, which, (soft, hard))


@contextmanager
def no_writing(server: ServerProcess) -> Iterator[None]:
    """Let the front, and the compile children that it starts meanwhile, write to no file."""
    with limited(server.pid, resource.RLIMIT_FSIZE, 0):
        yield


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Fill the disk that a folder is on."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    try:
        yield
    finally:
        filler.unlink()


async def check_full_disk(server: ServerProcess, full_disk: Any, wasm: bytes) -> None:
    """Uploads and new runs are refused by name; a run that ends meanwhile is on record when there is room again."""
    client = server.client()
    await upload(client, SHORT, "short")
    await upload(client, STORY, "story")
    run_id = await begin(client, "short", seconds=0.5)
    with full_disk:
        refused = [
            await client.post("/v1/inferlets", content=SHORT + "# more\n", headers=SOURCE),
            await client.post("/v1/inferlets", content=wasm, headers={"Content-Type": "application/wasm"}),
            await client.post("/v1/inferlets/short/runs", json={}),
            await client.post("/v1/inferlets/short/runs", json={}, headers={"Idempotency-Key": "a"}),
            await client.put("/v1/inferlets/names/other", json={"inferlet": "short"}),
            await client.delete("/v1/inferlets/names/short"),
        ]
        await asyncio.sleep(1)  # until the run has ended
        assert await server.health("live") == await server.health("ready") == 200
        assert (await client.get("/v1/inferlets/short")).status_code == 200
        assert (await client.get("/v1/runs")).status_code == 200

    for response in refused:
        assert response.status_code in (503, 507), response.text
        assert response.json()["error"]["code"].startswith("storage_"), response.text
        assert str(server.home) not in response.text
    assert (await ended(client, run_id))["result"] == "done"
    for content, kind in ((SHORT + "# more\n", "text/x-python"), (wasm, "application/wasm")):
        answer = await client.post("/v1/inferlets", content=content, headers={"Content-Type": kind})
        assert answer.status_code == 201, answer.text
        again = await client.post(f"/v1/inferlets/{answer.json()['id']}/runs", json={})
        assert again.json()["status"] == "succeeded", again.text


async def test_a_process_that_may_write_nothing(server: ServerProcess, component: Any) -> None:
    """As on a disk that is full."""
    await check_full_disk(server, no_writing(server), component("", data="2"))


async def test_a_full_disk(make_server: MakeServer, home: Path, component: Any) -> None:
    """A real one, of 24 MiB, where one can be mounted. What is shared by tests is not on it."""
    disk = home / "server"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        server = make_server(fake=ROOMY)
        await server.start()
        await check_full_disk(server, full(disk), component("", data="1"))
        await server.check_idle()
        await server.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


async def test_a_database_that_is_locked(server: ServerProcess) -> None:
    """By another process, for longer than it is waited for: runs go on, their ends are written when they can be."""
    client = server.client()
    await upload(client, STORY, "story")
    runs = [await begin(client, "story", n=300, times=30) for _ in range(5)]
    database = sqlite3.connect(server.home / "server" / "tartlet.db", timeout=30)
    database.execute("BEGIN EXCLUSIVE")
    try:
        refused = await asyncio.gather(
            client.post("/v1/inferlets/story/runs", json={}),
            client.post("/v1/inferlets", content=SHORT, headers=SOURCE),
        )
        assert (await client.get("/v1/inferlets/story")).status_code == 200
        assert await server.is_ready()
    finally:
        database.rollback()
        database.close()

    for response in refused:
        assert (response.status_code, response.json()["error"]["code"]) == (503, "storage_unavailable")
    ends = [await ended(client, run_id) for run_id in runs]
    assert {run["result"] for run in ends} == {("Once upon a time. " * 30)[:300]}
    usage = [run["usage"]["generated_tokens"] for run in ends]
    assert usage == [300] * 5


@pytest.mark.parametrize("most", [24, 60])
async def test_no_more_files_for_the_front(server: ServerProcess, most: int) -> None:
    """Who comes is turned away or served; what runs goes on; and when there are files again, all is well."""
    client = server.client()
    await upload(client, STORY, "story")
    runs = [await begin(client, "story", n=300, times=30) for _ in range(5)]
    idle = []
    with limited(server.pid, resource.RLIMIT_NOFILE, most):
        for _ in range(100):
            connection = socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
            idle.append(connection)
        answers = [await post(client, path, **given) for path, given in REQUESTS]
        for connection in idle:
            connection.close()

    for answer in answers:
        assert answer is None or answer.status_code in (200, 201, 503, 507), answer.text
    assert {(await ended(client, run_id))["result"] for run_id in runs} == {("Once upon a time. " * 30)[:300]}
    for path, given in REQUESTS:
        answer = await client.post(path, **given)
        assert answer.status_code in (200, 201), answer.text


REQUESTS: list[tuple[str, Any]] = [
    ("/v1/inferlets", {"content": SHORT + "# for files\n", "headers": SOURCE}),
    ("/v1/inferlets/story/runs", {"json": {"input": {"n": 10}}}),
    ("/v1/chat/completions", {"json": {"model": "fake", "messages": [{"role": "user", "content": "Hi"}]}}),
]


async def post(client: httpx2.AsyncClient, path: str, **given: Any) -> httpx2.Response | None:
    """An answer, or None if the connection was not taken."""
    try:
        return await client.post(path, **given)
    except httpx2.TransportError:
        return None


async def test_no_more_files_for_a_worker_and_the_engine(server: ServerProcess) -> None:
    """Runs that need one fail by name or get along; a worker that is started meanwhile finds its way to the engine."""
    client = server.client()
    await upload(client, STORY, "story")
    await upload(client, SHORT, "short")
    (engine,), workers = server.children("engine"), server.children("worker")
    with limited(engine, resource.RLIMIT_NOFILE, 5):
        for worker in workers:
            resource.prlimit(worker, resource.RLIMIT_NOFILE, (5, resource.prlimit(worker, resource.RLIMIT_NOFILE)[1]))
        answers = [await client.post(f"/v1/inferlets/{name}/runs", json={}) for name in ("story", "short", "short")]
        os.kill(workers[0], 9)
        await settled(lambda: workers[0] not in server.children("worker") and len(server.children("worker")) == 2)
    os.kill(workers[1], 9)
    await settled(lambda: workers[1] not in server.children("worker") and len(server.children("worker")) == 2)
    await settled(server.is_ready)

    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] == "succeeded" or answer.json()["error"]["code"], answer.text
    for name in ("story", "short"):
        answer = await client.post(f"/v1/inferlets/{name}/runs", json={"input": {}})
        assert answer.json()["status"] == "succeeded", answer.text
        assert (await run_of(client, answer.json()["id"]))["status"] == "succeeded"
