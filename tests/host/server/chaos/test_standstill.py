"""Processes that stand still: the server says so, goes on without them, and blames nobody for its own standstill."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

import pytest

from tests.host.server.chaos.conftest import ROOMY, MakeServer
from tests.host.server.chaos.server_process import STORY, ServerProcess, begin, ended, settled, upload

pytestmark = [pytest.mark.runner, pytest.mark.slow]

WORKERS = "tartlet.server.front.processes.worker_child"
ENGINE = "tartlet.server.front.processes.engine_watch"
IMPATIENT = {f"{WORKERS}:_SLUGGISH_BEATS": 2, f"{WORKERS}:_STUCK_BEATS": 4, f"{ENGINE}:_STUCK_BEATS": 8}
STORY_TEXT = "Once upon a time. "


async def test_a_worker(make_server: MakeServer) -> None:
    """It gets no more runs, and its own are lost; the other worker's come out as ever, and another takes its place."""
    server = make_server(fake=ROOMY, constants=IMPATIENT)
    await server.start()
    client = server.client()
    await upload(client, STORY, "story")
    runs = [await begin(client, "story", n=1000, times=100) for _ in range(10)]
    stopped = server.children("worker")[0]
    os.kill(stopped, signal.SIGSTOP)
    ends = [await ended(client, run_id) for run_id in runs]
    later = [await client.post("/v1/inferlets/story/runs", json={"input": {"n": 20}}) for _ in range(4)]

    assert sorted(run["status"] for run in ends) == ["failed"] * 5 + ["succeeded"] * 5
    assert {run["error"]["code"] for run in ends if run["error"]} == {"worker_lost"}
    assert {run["result"] for run in ends if not run["error"]} == {(STORY_TEXT * 100)[:1000]}
    assert {answer.json()["result"] for answer in later} == {STORY_TEXT + "On"}
    await settled(lambda: len(server.children("worker")) == 2 and stopped not in server.children("worker"))
    await server.check_idle()
    await server.stop()


async def test_the_engine(server: ServerProcess) -> None:
    """Not ready within seconds, though alive, and answering what needs no engine; when it goes on, so do its runs."""
    client = server.client()
    await upload(client, STORY, "story")
    runs = [await begin(client, "story", n=500, times=50) for _ in range(10)]
    (engine,) = server.children("engine")
    os.kill(engine, signal.SIGSTOP)
    await settled(lambda: _is_unready(server), seconds=10)
    for path in ("/health/live", "/v1/models", "/v1/runs", "/metrics"):
        began = time.monotonic()
        assert (await client.get(path)).status_code == 200
        assert time.monotonic() - began < 10, path
    refused = await client.post("/v1/inferlets/story/runs", json={})
    os.kill(engine, signal.SIGCONT)
    await settled(server.is_ready)

    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
    assert int(refused.headers["Retry-After"]) > 0
    assert {(await ended(client, run_id))["result"] for run_id in runs} == {(STORY_TEXT * 50)[:500]}
    assert server.children("engine") == [engine]


async def test_the_engine_for_ever(make_server: MakeServer) -> None:
    """Its runs end with an error, and another takes its place."""
    server = make_server(fake=ROOMY, constants=IMPATIENT)
    await server.start()
    client = server.client()
    await upload(client, STORY, "story")
    runs = [await begin(client, "story", n=1000, times=100) for _ in range(10)]
    stopped = server.children("engine")
    os.kill(stopped[0], signal.SIGSTOP)

    assert {(await ended(client, run_id))["error"]["code"] for run_id in runs} == {"engine_stopped"}
    await settled(lambda: server.children("engine") not in ([], stopped))
    await server.check_idle()
    await server.stop()


async def test_the_front(make_server: MakeServer) -> None:
    """Longer than a child may: all that came meanwhile counts, and no child is blamed."""
    server = make_server(fake=ROOMY, constants=IMPATIENT)
    await server.start()
    client = server.client()
    await upload(client, STORY, "story")
    children = [*server.children("engine"), *server.children("worker")]
    runs = [await begin(client, "story", n=1000, times=100) for _ in range(10)]
    os.kill(server.pid, signal.SIGSTOP)
    asking = asyncio.create_task(client.post("/v1/inferlets/story/runs", json={"input": {"n": 20}}))
    await asyncio.sleep(6)
    os.kill(server.pid, signal.SIGCONT)

    assert (await asking).json()["result"] == STORY_TEXT + "On"
    assert {(await ended(client, run_id))["result"] for run_id in runs} == {(STORY_TEXT * 100)[:1000]}
    assert [*server.children("engine"), *server.children("worker")] == children
    await server.check_idle()
    await server.stop()


@pytest.mark.parametrize("jump_s", [86_400 * 40, -86_400 * 40])
async def test_the_clock_jumps(make_server: MakeServer, jump_s: int) -> None:
    """By weeks, either way: what runs goes on, and what it took is told as it was; nothing is refused."""
    server = make_server(fake=ROOMY, jump_s=jump_s)
    await server.start()
    client = server.client()
    await upload(client, STORY, "story")
    run_id = await begin(client, "story", n=300, times=30)
    os.kill(server.pid, signal.SIGUSR1)
    later = (await client.post("/v1/inferlets/story/runs", json={"input": {"n": 20}})).json()
    run: Any = await ended(client, run_id)

    assert run["result"] == (STORY_TEXT * 30)[:300]
    assert 0 < run["usage"]["wall_ms"] < 60_000
    assert abs(later["created"] - run["created"] - jump_s) < 60
    assert later["status"] == "succeeded"
    listed = (await client.get("/v1/runs")).json()["data"]
    assert {each["id"] for each in listed} == {run_id, later["id"]}
    await server.check_idle()
    await server.stop()


async def _is_unready(server: ServerProcess) -> bool:
    return await server.health("ready") == 503
