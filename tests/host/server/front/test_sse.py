from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tartlet.server.front import sse
from tartlet.server.front.sse import PING, EventStream, sse_event


class Client:
    """The other end of an answer, which takes what it likes."""

    def __init__(self) -> None:
        self.body = b""
        self.start: dict[str, Any] = {}
        self.goes = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()

    async def receive(self) -> dict[str, Any]:
        await self.goes.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.takes.wait()
        if message["type"] == "http.response.start":
            self.start = message
        else:
            self.body += message["body"]


class Pieces:
    """What is sent, and whether it was closed."""

    def __init__(self, *pieces: bytes, is_endless: bool = False, error: Exception | None = None) -> None:
        self._given = pieces
        self._is_endless = is_endless
        self._error = error
        self.was_closed = False

    async def all(self) -> AsyncGenerator[bytes, None]:
        try:
            for piece in self._given:
                yield piece
            if self._error is not None:
                raise self._error
            if self._is_endless:
                await asyncio.Event().wait()
        finally:
            self.was_closed = True


async def send(pieces: Pieces, client: Client, ping_s: float = 60) -> None:
    await EventStream(pieces.all(), ping_s=ping_s)({}, client.receive, client.send)


def test_an_event() -> None:
    """Its data is one line, whatever is in it."""
    assert sse_event("output", {"text": "a\nb\u2028\ud800"}, 3) == (
        b'id: 3\nevent: output\ndata: {"text": "a\\nb\\u2028\\ud800"}\n\n'
    )
    assert sse_event("x", {}) == b"event: x\ndata: {}\n\n"


async def test_all_pieces_are_sent() -> None:
    """With headers that keep proxies from holding them back."""
    client, pieces = Client(), Pieces(b"a", b"b")
    await send(pieces, client)
    headers = dict(client.start["headers"])

    assert client.body == b"ab"
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert headers[b"cache-control"] == b"no-cache"
    assert b"content-length" not in headers


async def test_silence_is_broken() -> None:
    """So that nobody on the way takes the connection for dead."""
    client, pieces = Client(), Pieces(b"a", is_endless=True)
    sending = asyncio.create_task(send(pieces, client, ping_s=0.001))
    while client.body.count(PING) < 3:
        await asyncio.sleep(0)
    client.goes.set()
    await sending

    assert client.body.startswith(b"a" + PING)


async def test_a_client_that_goes() -> None:
    """What is sent is closed at once, though it waits."""
    client, pieces = Client(), Pieces(b"a", is_endless=True)
    sending = asyncio.create_task(send(pieces, client))
    while not client.body:
        await asyncio.sleep(0)
    client.goes.set()
    await sending

    assert pieces.was_closed


async def test_a_client_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as gone after a while."""
    monkeypatch.setattr(sse, "SEND_TIMEOUT_S", 0.01)
    client, pieces = Client(), Pieces(b"a", b"b")

    async def block(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    await EventStream(pieces.all(), ping_s=60)({}, client.receive, block)
    assert pieces.was_closed


async def test_a_fault_is_not_hidden() -> None:
    """It comes out, to be logged."""
    with pytest.raises(ZeroDivisionError):
        await send(Pieces(b"a", error=ZeroDivisionError()), Client())
