"""Clients that vanish, read slowly, or come in crowds: over real connections, to a server without a model."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.host.server.front.test_running import ENDLESS, Running, until_none_lives, upload

pytestmark = pytest.mark.runner

STORY = """
from tartlet_sdk import Model, inferlet

@inferlet
async def main(n: int) -> str:
    context = Model.default().context()
    context.fill("Once upon a time. " * 20)
    return (await context.generate(max_tokens=n)).text
"""
LOUD = """
from tartlet_sdk import inferlet

@inferlet
async def main() -> int:
    for number in range(900):
        print(f"{number:>8} " + "x" * 990, flush=True)
    return 900
"""


class RawClient:
    """A connection on which anything can be said, and which can be cut."""

    def __init__(self, url: str, key: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._address = (host, int(port))
        self._key = key
        self.reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self, limit: int = 65_536, receive_bytes: int | None = None) -> None:
        """Connect; with a small buffer, the server soon notices that nothing is read."""
        connection = socket.socket()
        if receive_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, self._address)
        self.reader, self._writer = await asyncio.open_connection(sock=connection, limit=limit)

    async def say(self, text: str) -> None:
        """Send these bytes."""
        self._writer.write(text.encode())
        await self._writer.drain()

    def head(self, method: str, path: str, *lines: str) -> str:
        """The head of a request, without the empty line at its end."""
        first = [f"{method} {path} HTTP/1.1", "Host: server", f"Authorization: Bearer {self._key}"]
        return "\r\n".join([*first, *lines]) + "\r\n"

    def request(self, method: str, path: str, body: Any) -> str:
        """A whole request with JSON."""
        text = json.dumps(body)
        return self.head(method, path, "Content-Type: application/json", f"Content-Length: {len(text)}") + f"\r\n{text}"

    async def cut(self) -> None:
        """Be gone at once, without a farewell."""
        connection = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("runners", "components"):
        (tmp_path / name).symlink_to((own_home / name).resolve())
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    """A server that the test starts. When it stops, no page and no context may be left in its engine."""
    running = Running(drain_s=0.2, max_connections=1500)
    yield running
    await running.stop()


@pytest.fixture
async def key(running: Running) -> str:
    """Of the operator, for a server that listens now."""
    url, key = await running.start()
    running.url = url  # type: ignore[attr-defined]
    assert key is not None
    return key


@pytest.fixture
def url(running: Running, key: str) -> str:
    """Where it listens."""
    return str(running.url)  # type: ignore[attr-defined]


@pytest.fixture
async def client(url: str, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    """One that behaves."""
    async with httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
        yield client


async def test_clients_that_vanish_at_every_state(
    client: httpx2.AsyncClient, url: str, key: str, tmp_path: Path
) -> None:
    """Before, in and after a request's head and body, and in what is answered: what they began ends, all is freed."""
    await upload(client, ENDLESS, "endless")
    files = _files(tmp_path)
    raw = RawClient(url, key)
    wasm = raw.head("POST", "/v1/inferlets", "Content-Type: application/wasm", "Content-Length: 1000000")
    session = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: " + "A" * 22 + "==",
    ]
    texts = {
        "nothing": ("", ""),
        "half a line": ("POST /v1/inf", ""),
        "half a head": (raw.head("POST", "/v1/inferlets/endless/runs", "Content-Le"), ""),
        "half a body": (raw.request("POST", "/v1/inferlets/endless/runs", {"input": "x" * 100})[:-50], ""),
        "half an upload": (wasm + "\r\n\0asm" + "x" * 100_000, ""),
        "a chunk that never ends": (
            raw.head("POST", "/v1/inferlets", "Content-Type: application/wasm", "Transfer-Encoding: chunked")
            + "\r\nffffff\r\nxxxx",
            "",
        ),
        "a wait": (raw.request("POST", "/v1/inferlets/endless/runs", {}), "run"),
        "a stream": (raw.request("POST", "/v1/inferlets/endless/runs", {"stream": True}), "run"),
        "a session that is refused": (raw.head("GET", "/v1/runs/run_none/session", *session) + "\r\n", ""),
    }
    for state, (text, begins) in texts.items():
        for _ in range(3):
            each = RawClient(url, key)
            await each.open()
            await each.say(text)
            if begins:
                while not (await client.get("/v1/runs?status=running")).json()["data"]:
                    await asyncio.sleep(0.01)
            else:
                assert (await client.get("/health/live")).status_code == 200, state
            await each.cut()
            await until_none_lives(client)

    assert _files(tmp_path) == files
    async with client.stream("POST", "/v1/inferlets/endless/runs", json={"stream": True}) as stream:
        assert stream.status_code == 200


async def test_slow_readers_hold_up_nobody(client: httpx2.AsyncClient, url: str, key: str) -> None:
    """A run whose client does not read comes to its end, and is on record; others run as if nothing were."""
    await upload(client, LOUD, "loud")
    await upload(client, STORY, "story")
    quiet = await client.post("/v1/inferlets/story/runs", json={"input": {"n": 50}, "seed": 1})
    slow = [RawClient(url, key) for _ in range(5)]
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
    await until_none_lives(client)


async def test_a_thousand_connections(client: httpx2.AsyncClient, url: str, key: str) -> None:
    """That do nothing, and a request among them is answered; when they have gone, all is as before."""
    await upload(client, STORY, "story")
    quiet = await client.post("/v1/inferlets/story/runs", json={"input": {"n": 30}, "seed": 1})
    idle = [RawClient(url, key) for _ in range(1000)]
    for each in idle:
        await each.open()
    busy = await client.post("/v1/inferlets/story/runs", json={"input": {"n": 30}, "seed": 1})
    assert len(quiet.json()["result"]) == 30
    assert busy.json()["result"] == quiet.json()["result"]

    answers = await asyncio.gather(*(_health(each) for each in idle))
    assert set(answers) == {b"HTTP/1.1 200 OK\r\n"}
    await asyncio.gather(*(each.cut() for each in idle))
    assert (await client.get("/health/ready")).status_code == 200


async def test_two_hundred_streams_at_once(client: httpx2.AsyncClient, url: str, key: str) -> None:
    """Each gets its own run's events to the end, though half of the clients vanish in between."""
    await upload(client, STORY, "story")
    clients = [RawClient(url, key) for _ in range(200)]

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
    await until_none_lives(client)

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
