"""Processes that are killed while much goes on: what was theirs is told to be lost, and nothing else is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

import httpx2
import pytest

from tests.host.server.chaos.conftest import MakeServer
from tests.host.server.chaos.server_process import (
    STORY,
    ServerProcess,
    begin,
    ended,
    events_of,
    run_of,
    settled,
    upload,
)

pytestmark = [pytest.mark.runner, pytest.mark.slow]

CHAT = {"model": "fake", "messages": [{"role": "user", "content": "tell " * 300}], "stream": True, "max_tokens": 1000}


async def finished(client: httpx2.AsyncClient, count: int) -> dict[str, Any]:
    """Run some stories to their end, as on a quiet day; what is on record of each."""
    texts = [f"Story {number} begins. " for number in range(count)]
    runs = await asyncio.gather(*(begin(client, "story", n=50, text=text) for text in texts))
    return {run_id: await ended(client, run_id) for run_id in runs}


async def until_all_have_begun(client: httpx2.AsyncClient, runs: list[str]) -> None:
    """Wait until each has printed something."""

    async def wait_for(run_id: str) -> None:
        async with client.stream("GET", f"/v1/runs/{run_id}/events") as stream:
            async for line in stream.aiter_lines():
                if "begun" in line:
                    return

    await asyncio.gather(*(wait_for(run_id) for run_id in runs))


async def test_a_worker_with_fifty_live_runs(server: ServerProcess) -> None:
    """They end as `worker_lost`; the other worker's come out as on a quiet day; the front and the engine stay."""
    client = server.client()
    await upload(client, STORY, "story")
    record = await finished(client, 2)
    texts = [f"{number} is a number. " for number in range(50)]
    given = {"text": texts[0], "n": 1000, "times": 50}
    quiet = await client.post("/v1/inferlets/story/runs", json={"input": given})
    front, engine, (worker, other) = server.pid, server.children("engine"), sorted(server.children("worker"))
    runs = [await begin(client, "story", text=text, n=1000, times=50) for text in texts for _ in range(2)]
    await until_all_have_begun(client, runs)
    alive = (await client.get("/v1/runs?status=running&limit=100")).json()["data"]
    os.kill(worker, signal.SIGKILL)

    ends = [await ended(client, run_id) for run_id in runs]
    lost = [run for run in ends if run["status"] == "failed"]
    assert {run["error"]["code"] for run in lost} == {"worker_lost"}
    assert 0 < len(lost) <= 50
    assert len(alive) < len(runs) or len(lost) > 40  # on a machine that is busy some have ended before
    expected = [(text * 50)[:1000] for text in texts for _ in range(2)]
    assert quiet.json()["result"] == expected[0]
    assert [run.get("result") for run in ends if run not in lost] == [
        text for text, run in zip(expected, ends, strict=True) if run not in lost
    ]
    assert {run_id: await run_of(client, run_id) for run_id in record} == record
    await settled(lambda: len(server.children("worker")) == 2)
    assert (server.pid, server.children("engine")) == (front, engine)
    assert other in server.children("worker")


async def test_the_engine_with_fifty_live_runs(server: ServerProcess) -> None:
    """All end with an error, streams by a last event; readiness is false, and true again by itself."""
    client = server.client()
    await upload(client, STORY, "story")
    record = await finished(client, 2)
    (engine,), workers = server.children("engine"), server.children("worker")
    runs = [await begin(client, "story", n=3000, times=200) for _ in range(48)]
    await until_all_have_begun(client, runs)
    heard: list[list[Any]] = [[], []]

    async def follow(number: int, path: str, body: Any) -> None:
        async for event in events_of(client, path, body):
            heard[number].append(event)

    follow_run = follow(0, "/v1/inferlets/story/runs", {"stream": True, "input": {"n": 3000, "times": 200}})
    following = asyncio.gather(follow_run, follow(1, "/v1/chat/completions", CHAT))
    await settled(lambda: len(heard[0]) > 1 and len(heard[1]) > 3)
    os.kill(engine, signal.SIGKILL)
    await settled(lambda: is_unready(server), seconds=10)
    assert await server.health("live") == 200
    refused = await client.post("/v1/chat/completions", json={**CHAT, "stream": False})
    await asyncio.wait_for(following, 30)

    assert refused.status_code in (200, 503)
    if refused.status_code == 503:
        assert int(refused.headers["Retry-After"]) > 0
    assert heard[0][-1]["type"] == "finished"
    assert heard[0][-1]["run"]["error"]["code"] == "engine_stopped"
    assert heard[1][-1]["error"]["code"] == "engine_stopped"
    assert {(await ended(client, run_id))["error"]["code"] for run_id in runs} == {"engine_stopped"}
    assert {run_id: await run_of(client, run_id) for run_id in record} == record
    await settled(server.is_ready)
    assert server.children("worker") == workers
    assert server.children("engine") != [engine]
    await finished(client, 2)


async def is_unready(server: ServerProcess) -> bool:
    """Whether it says that it is not ready."""
    return await server.health("ready") == 503


async def test_the_front_with_fifty_live_runs(server: ServerProcess) -> None:
    """All ends with it, and nothing stays; started again at the same port, it knows all that has ended."""
    client = server.client()
    await upload(client, STORY, "story")
    record = await finished(client, 10)
    runs = [await begin(client, "story", n=3000, times=200) for _ in range(50)]
    await until_all_have_begun(client, runs)
    asked = asyncio.create_task(client.post("/v1/inferlets/story/runs", json={"input": {"n": 2000}}))
    await asyncio.sleep(0)
    await server.kill()
    await asyncio.gather(asked, return_exceptions=True)
    assert len(list(server.sockets.iterdir())) == 1
    await server.start(port=int(server.url.rsplit(":", 1)[1]))

    client = server.client()
    assert len(list(server.sockets.iterdir())) == 1  # that of the dead server is gone
    assert {run_id: await run_of(client, run_id) for run_id in record} == record
    ends = [await run_of(client, run_id) for run_id in runs]
    assert {run["error"]["code"] for run in ends} == {"worker_lost"}
    again = await asyncio.gather(*(begin(client, "story", n=50) for _ in range(150)))
    assert {(await ended(client, run_id))["status"] for run_id in again} == {"succeeded"}


async def test_a_compile_child(server: ServerProcess, component: Any) -> None:
    """Its upload alone is refused; sent again, it is taken; runs don't notice."""
    client = server.client()
    await upload(client, STORY, "story")
    run_id = await begin(client, "story", n=300)
    wasm = component("")
    uploading = asyncio.create_task(
        client.post("/v1/inferlets?name=wasm", content=wasm, headers={"Content-Type": "application/wasm"})
    )
    killed = []

    def kill_one() -> bool:
        for child in server.children("compile"):
            os.kill(child, signal.SIGKILL)
            killed.append(child)
        return bool(killed) or uploading.done()

    await settled(kill_one)
    answer = await uploading
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == "compile_limit"  # the system kills what takes too much memory
    again = await client.post("/v1/inferlets?name=wasm", content=wasm, headers={"Content-Type": "application/wasm"})
    assert again.status_code == 201, again.text
    assert (await client.post("/v1/inferlets/wasm/runs", json={})).json()["status"] == "succeeded"
    assert (await ended(client, run_id))["result"] == ("Once upon a time. " * 20)[:300]


async def test_everything_again_and_again(make_server: MakeServer) -> None:
    """Whatever dies while clients go on asking, in whichever order: each is answered, and what it got is on record."""
    server = make_server(fake={"token_delay_s": 0.001})
    await server.start()
    client = server.client()
    await upload(client, STORY, "story")
    is_over = False
    heard: list[tuple[str, Any]] = []

    async def ask() -> None:
        while not is_over:
            answer = await client.post("/v1/inferlets/story/runs", json={"input": {"n": 30, "text": "a story "}})
            body = answer.json()
            if answer.status_code == 503:
                await asyncio.sleep(0.05)
                continue
            assert answer.status_code == 200, answer.text
            if body["status"] == "succeeded":
                assert body["result"] == ("a story " * 20)[:30]
            else:
                assert body["error"]["code"] in ("worker_lost", "engine_stopped"), json.dumps(body)
            heard.append((body["id"], body))

    asking = [asyncio.create_task(ask()) for _ in range(8)]
    for module in ("worker", "worker", "engine", "worker", "engine"):
        await settled(server.is_ready)
        so_far = len(heard)
        await settled(lambda so_far=so_far: len(heard) > so_far + 4)
        os.kill(server.children(module)[0], signal.SIGKILL)
    await settled(server.is_ready)
    is_over = True
    await asyncio.gather(*asking)

    assert [await run_of(client, run_id) for run_id, _ in heard] == [body for _, body in heard]
    await server.check_idle()
    await server.stop()
