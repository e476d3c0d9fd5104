"""A disk that is full for a while: what is asked for meanwhile fails by name, and nothing that has ended is lost."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytestmark = pytest.mark.runner

SERVER = """
import asyncio

from tartlet.progress import silent
from tartlet.server.front.in_process import open_in_process
from tartlet.server.front.running import run_server
from tartlet.server.settings import Settings
from tartlet.testing import FakeEngine

def open_sandboxes(settings, progress):
    return open_in_process(engine=FakeEngine(), spares=0)

def announce(url, key):
    print(url, key, flush=True)

asyncio.run(run_server(Settings(port=0), open_sandboxes, silent, announce))
"""
SHORT = """
import asyncio
from tartlet_sdk import inferlet

@inferlet
async def main(seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    return "done"
"""
SOURCE = {"Content-Type": "text/x-python"}


@pytest.fixture
def server(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, httpx2.AsyncClient]]:
    """A server in a process of its own, and a client of its operator."""
    for name in ("runners", "components"):
        (tmp_path / name).symlink_to((own_home / name).resolve())
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        url, key = process.stdout.readline().split()
        yield process.pid, httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60)
        process.terminate()


@contextmanager
def full_disk(pid: int) -> Iterator[None]:
    """Let a process write to no file."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk(server: tuple[int, httpx2.AsyncClient]) -> None:
    """Uploads and new runs fail with an error; a run that ends meanwhile is on record when there is room again."""
    pid, client = server
    async with client:
        uploaded = await client.post("/v1/inferlets?name=short", content=SHORT, headers=SOURCE)
        assert uploaded.status_code == 201, uploaded.text
        started = (
            await client.post("/v1/inferlets/short/runs", json={"wait": False, "input": {"seconds": 0.5}})
        ).json()
        with full_disk(pid):
            refused = [
                await client.post("/v1/inferlets", content=SHORT + "# more\n", headers=SOURCE),
                await client.post("/v1/inferlets/short/runs", json={}),
            ]
            await asyncio.sleep(1)  # until the run has ended
            assert (await client.get("/health/live")).status_code == 200
            assert (await client.get("/v1/inferlets/short")).status_code == 200

        for response in refused:
            assert response.status_code in (500, 503, 507), response.text
            assert response.json()["error"]["code"]
        while (run := await _run(client, started["id"]))["status"] == "running":
            await asyncio.sleep(0.05)
        assert (run["status"], run["result"]) == ("succeeded", "done")
        assert (await client.post("/v1/inferlets", content=SHORT + "# more\n", headers=SOURCE)).status_code == 201
        assert (await client.post("/v1/inferlets/short/runs", json={})).json()["result"] == "done"


async def _run(client: httpx2.AsyncClient, run_id: str) -> Any:
    return (await client.get(f"/v1/runs/{run_id}")).json()
