"""Clients that vanish, read slowly, or come in crowds: over real connections, to a server in processes of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import websockets

from tests.host.server.chaos.conftest import ROOMY, MakeServer
from tests.host.server.chaos.raw_client import RawClient
from tests.host.server.chaos.server_process import ServerProcess, settled, upload

pytestmark = [pytest.mark.runner, pytest.mark.slow]

ENDLESS = """
import asyncio
from tartlet_sdk import Model, inferlet

@inferlet
async def main(request: object = None) -> None:
    print("started", flush=True)
    context = Model.default().context()
    context.fill("a page is held here " * 20)
    await context.generate(max_tokens=1)
    await asyncio.sleep(3600)
"""
STORY = """
from tartlet_sdk import Model, inferlet

@inferlet
async def main(n: int) -> str:
    context = Model.default().context()
    context.fill("Once upon a time. " * 20)
    return (await context.generate(max_tokens=n)).text
"""
SILENT = """
import asyncio
from tartlet_sdk import inferlet

@inferlet
async def main() -> None:
    await asyncio.sleep(2)
"""
LOUD = """
from tartlet_sdk import inferlet

@inferlet
async def main() -> int:
    for number in range(900):
        print(f"{number:>8} " + "x" * 990, flush=True)
    return 900
"""
SESSION = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: " + "A" * 22 + "==",
)
CHAT: dict[str, Any] = {"model": "fake", "messages": [{"role": "user", "content": "tell " * 1000}], "max_tokens": 4000}
STATES: dict[str, Callable[[RawClient], str]] = {
    "nothing": lambda raw: "",
    "half a line": lambda raw: "POST /v1/inf",
    "half a head": lambda raw: raw.head("POST", "/v1/inferlets/endless/runs", "Content-Le"),
    "half a body": lambda raw: raw.request("POST", "/v1/inferlets/endless/runs", {"input": "x" * 100})[:-50],
    "half an upload": lambda raw: (
        raw.head("POST", "/v1/inferlets", "Content-Type: application/wasm", "Content-Length: 1000000")
        + "\r\n\0asm"
        + "x" * 100_000
    ),
    "a chunk that never ends": lambda raw: (
        raw.head("POST", "/v1/inferlets", "Content-Type: application/wasm", "Transfer-Encoding: chunked")
        + "\r\nffffff\r\nxxxx"
    ),
    "a session that is refused": lambda raw: raw.head("GET", "/v1/runs/run_none/session", *SESSION) + "\r\n",
    "an upload that is whole": lambda raw: raw.request("POST", "/v1/inferlets", {"main": "a", "files": {"a.py": "1"}}),
}
RUNNING_STATES: dict[str, Callable[[RawClient], str]] = {
    "a wait": lambda raw: raw.request("POST", "/v1/inferlets/endless/runs", {}),
    "a stream": lambda raw: raw.request("POST", "/v1/inferlets/endless/runs", {"stream": True}),
    "a served page": lambda raw: raw.request("POST", "/v1/serve/endless/page", {}),
    "a chat": lambda raw: raw.request("POST", "/v1/chat/completions", CHAT),
    "a chat of many choices": lambda raw: raw.request("POST", "/v1/chat/completions", {**CHAT, "n": 8}),
    "a streamed chat": lambda raw: raw.request("POST", "/v1/chat/completions", {**CHAT, "stream": True}),
    "many streamed chats": lambda raw: raw.request("POST", "/v1/chat/completions", {**CHAT, "n": 8, "stream": True}),
    "a completion": lambda raw: raw.request(
        "POST", "/v1/completions", {"model": "fake", "prompt": ["tell " * 1000] * 4, "max_tokens": 4000}
    ),
    "a response": lambda raw: raw.request(
        "POST", "/v1/responses", {"model": "fake", "input": "tell " * 1000, "stream": True}
    ),
}


@pytest.fixture
async def server(make_server: MakeServer) -> ServerProcess:
    """A server that takes many connections, in which nothing may be left at the end."""
    server = make_server(fake=ROOMY, settings={"max_connections": 1500, "limits": {"runs_at_once": 500}})
    await server.start()
    return server


@pytest.fixture
async def client(server: ServerProcess) -> Any:
    """One that behaves."""
    yield server.client()
    await server.check_idle()
    await server.stop()


async def living(client: httpx2.AsyncClient) -> int:
    """How many runs go on."""
    return len((await client.get("/v1/runs?status=running")).json()["data"])


async def until(client: httpx2.AsyncClient, number: int) -> None:
    """Wait until so many runs go on."""

    async def are_as_many() -> bool:
        return await living(client) == number

    await settled(are_as_many)


async def test_clients_that_vanish_at_every_state(client: httpx2.AsyncClient, server: ServerProcess) -> None:
    """Before, in and after a request's head and body, and in what is answered: what they began ends, all is freed."""
    await upload(client, ENDLESS, "endless")
    files = _files(server.home)
    for state, text in STATES.items():
        for _ in range(3):
            each = RawClient(server.url, server.key)
            await each.open()
            await each.say(text(each))
            assert (await client.get("/health/live")).status_code == 200, state
            await each.cut()
    await until(client, 0)
    for text in RUNNING_STATES.values():
        for waits_for_an_answer in (False, True):
            each = RawClient(server.url, server.key)
            await each.open()
            await each.say(text(each))
            await until(client, 1)
            if waits_for_an_answer and '"stream": true' in text(each):
                await each.reader.readuntil(b"data: ")
            await each.cut()
            await until(client, 0)
            await settled(lambda: holds_nothing(server))
    await _vanish_in_a_session(client, server)

    await settled(lambda: _files(server.home) == files)


async def holds_nothing(server: ServerProcess) -> bool:
    """Whether the engine has freed what runs held."""
    stats = await asyncio.to_thread(server.engine_stats)
    return (stats.runs, stats.pages_held, stats.contexts) == (0, 0, 0)


async def _vanish_in_a_session(client: httpx2.AsyncClient, server: ServerProcess) -> None:
    """A run that nobody else waits for goes on, as it was started to; it is cancelled by hand."""
    run_id = (await client.post("/v1/inferlets/endless/runs", json={"wait": False})).json()["id"]
    for _ in range(3):
        each = RawClient(server.url, server.key)
        await each.open()
        await each.say(each.head("GET", f"/v1/runs/{run_id}/session", *SESSION) + "\r\n")
        assert b" 101 " in await each.reader.readline()
        await each.reader.readuntil(b"started")
        await each.cut()
    assert await living(client) == 1
    assert (await client.delete(f"/v1/runs/{run_id}")).status_code in (200, 202)
    await until(client, 0)


async def test_silent_runs_keep_their_connections(make_server: MakeServer) -> None:
    """However long nothing happens: a stream says that it is alive, and a session is there when something comes."""
    server = make_server(settings={"ping_s": 0.1})
    await server.start()
    client = server.client()
    await upload(client, SILENT, "silent")
    comments = 0
    async with client.stream("POST", "/v1/inferlets/silent/runs", json={"stream": True}) as stream:
        async for line in stream.aiter_lines():
            comments += line.startswith(":")
    run_id = (await client.post("/v1/inferlets/silent/runs", json={"wait": False})).json()["id"]
    address = f"{server.url.replace('http', 'ws')}/v1/runs/{run_id}/session"
    async with websockets.connect(address, additional_headers={"Authorization": f"Bearer {server.key}"}) as session:
        types = [json.loads(message)["type"] async for message in session]

    assert comments > 10
    assert types == ["started", "usage", "finished"]
    await server.check_idle()
    await server.stop()


async def test_slow_readers_hold_up_nobody(client: httpx2.AsyncClient, server: ServerProcess) -> None:
    """A run whose client does not read comes to its end, and is on record; others run as if nothing were."""
    await upload(client, LOUD, "loud")
    await upload(client, STORY, "story")
    quiet = await client.post("/v1/inferlets/story/runs", json={"input": {"n": 50}, "seed": 1})
    slow = [RawClient(server.url, server.key) for _ in range(5)]
    for each in slow:
        await each.open(receive_bytes=4096, limit=4096)
        await each.say(each.request("POST", "/v1/inferlets/loud/runs", {"stream": True}))
        await each.reader.readline()
    again = await client.post("/v1/inferlets/story/runs", json={"input": {"n": 50}, "seed": 1})
    assert len(quiet.json()["result"]) == 50
    assert again.json()["result"] == quiet.json()["result"]
    while len([run for run in await _runs(client) if run["status"] == "succeeded"]) < 2 + len(slow):
        await asyncio.sleep(0.02)

    for each in slow[:-1]:
        await each.cut()
    rest = await _read_to_the_end(slow[-1])
    assert '"type":"finished"' in rest.replace(" ", "")
    await slow[-1].cut()
    await until(client, 0)


async def test_a_thousand_connections(client: httpx2.AsyncClient, server: ServerProcess) -> None:
    """That do nothing, and a request among them is answered; when they have gone, all is as before."""
    await upload(client, STORY, "story")
    quiet = await client.post("/v1/inferlets/story/runs", json={"input": {"n": 30}, "seed": 1})
    idle = [RawClient(server.url, server.key) for _ in range(1000)]
    for each in idle:
        await each.open()
    busy = await client.post("/v1/inferlets/story/runs", json={"input": {"n": 30}, "seed": 1})
    assert len(quiet.json()["result"]) == 30
    assert busy.json()["result"] == quiet.json()["result"]

    answers = await asyncio.gather(*(_health(each) for each in idle))
    assert set(answers) == {b"HTTP/1.1 200 OK\r\n"}
    await asyncio.gather(*(each.cut() for each in idle))
    assert (await client.get("/health/ready")).status_code == 200


async def test_two_hundred_streams_at_once(client: httpx2.AsyncClient, server: ServerProcess) -> None:
    """Each gets its own run's events to the end, though half of the clients vanish in between."""
    await upload(client, STORY, "story")
    clients = [RawClient(server.url, server.key) for _ in range(200)]

    async def stream(number: int, each: RawClient) -> str | None:
        await each.open()
        body = {"stream": True, "input": {"n": 20}, "seed": 1}
        await each.say(each.request("POST", "/v1/inferlets/story/runs", body))
        await each.reader.readline()
        if number % 2:
            await each.cut()
            return None
        rest = await _read_to_the_end(each)
        await each.cut()
        return rest

    texts = await asyncio.gather(*(stream(number, each) for number, each in enumerate(clients)))
    results = {_result(text) for text in texts if text is not None}
    await until(client, 0)

    assert len(results) == 1
    assert len(json.loads(results.pop())) == 20
    assert (await client.get("/health/ready")).status_code == 200


def _files(folder: Path) -> list[str]:
    """What is kept of uploads."""
    return sorted(str(path) for path in (folder / "server" / "blobs").rglob("*"))


async def _runs(client: httpx2.AsyncClient) -> list[Any]:
    data: list[Any] = (await client.get("/v1/runs?limit=100")).json()["data"]
    return data


async def _health(each: RawClient) -> bytes:
    await each.say(each.head("GET", "/health/live") + "\r\n")
    return await each.reader.readline()


async def _read_to_the_end(each: RawClient) -> str:
    """The rest of a stream of events, whose last one tells the end."""
    text = b""
    while b"finished" not in text[-4096:] or not text.endswith(b"0\r\n\r\n"):
        chunk = await each.reader.read(65_536)
        if not chunk:
            break
        text += chunk
    return text.decode()


def _result(text: str) -> str:
    """What the run that a stream of events tells of returned."""
    line = next(line for line in text.splitlines() if line.startswith("data: ") and '"finished"' in line)
    return json.dumps(json.loads(line.removeprefix("data: "))["run"]["result"])
