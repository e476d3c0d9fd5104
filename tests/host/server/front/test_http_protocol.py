from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn

from tartlet.server.front import http_protocol
from tartlet.server.front.http_protocol import MAX_HEADER_BYTES, MAX_HEADERS, BoundedHttp, BoundedWebSocket

over: list[str] = []
"""Why the application stopped talking over a WebSocket."""


async def talk_for_ever(send: Any) -> None:
    await send({"type": "websocket.accept"})
    try:
        while True:
            await send({"type": "websocket.send", "text": "x" * 10_000})
    except Exception as error:
        over.append(type(error).__name__)


async def app(scope: dict[str, object], receive: object, send: object) -> None:
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse

    if scope["type"] == "websocket":
        await talk_for_ever(send)
        return
    request = Request(scope, receive)  # type: ignore[arg-type]
    if request.url.path == "/refused":
        await PlainTextResponse("no", 401)(scope, receive, send)  # type: ignore[arg-type]
        return
    if request.url.path == "/long":
        await PlainTextResponse("x" * (64 << 20))(scope, receive, send)  # type: ignore[arg-type]
        return
    body = await request.body()
    await PlainTextResponse(f"{len(request.headers)} {len(body)}")(scope, receive, send)  # type: ignore[arg-type]


@pytest.fixture
async def port() -> AsyncIterator[int]:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        port=0,
        loop="none",
        http=BoundedHttp,
        ws=BoundedWebSocket,
        lifespan="off",
        log_config=None,
    )
    server = uvicorn.Server(config)
    server.capture_signals = __import__("contextlib").nullcontext  # type: ignore[method-assign]
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


async def exchange(port: int, *pieces: bytes) -> bytes:
    """Send pieces, as far as they are taken, and give all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b"reset"
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def request(*headers: str, body: bytes = b"", path: str = "/") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: h", "connection: close", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def test_a_usual_request(port: int) -> None:
    """It passes, with a body longer than headers may be."""
    answer = await exchange(port, request("x: " + "y" * 1000, body=b"z" * 3 * MAX_HEADER_BYTES))

    assert answer.endswith(f"4 {3 * MAX_HEADER_BYTES}".encode())


async def test_requests_in_a_row(port: int) -> None:
    """What is counted begins anew with each."""
    first = request("x: " + "y" * 40_000, body=b"abc").replace(b"connection: close\r\n", b"")
    answer = await exchange(port, first, first, request(body=b"abc"))

    assert answer.count(b"HTTP/1.1 200") == 3


@pytest.mark.parametrize(
    "pieces",
    [
        [request(*[f"x{index}: y" for index in range(MAX_HEADERS + 1)])],
        [b"GET / HTTP/1.1\r\nx: ", *[b"y" * 10_000] * 50],
        [b"GET /", *[b"y" * 10_000] * 50],
        [b"GET / HTTP/1.1\r\n", *[f"x{index}: {'y' * 100}\r\n".encode() for index in range(2000)]],
    ],
)
async def test_headers_that_are_too_long(port: int, pieces: list[bytes]) -> None:
    """The connection is closed, and does not take in the rest."""
    answer = await exchange(port, *pieces)

    assert answer == b"reset" or answer.startswith(b"HTTP/1.1 431")


async def test_headers_that_do_not_come(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who says nothing, or half, is not waited for."""
    monkeypatch.setattr(http_protocol, "HEADER_TIMEOUT_S", 0.05)

    assert await exchange(port) == b""
    assert await exchange(port, b"GET / HTTP/1.1\r\nx: ") == b""


async def test_what_is_no_http(port: int) -> None:
    """It is answered as such."""
    assert (await exchange(port, b"\x16\x03\x01\x02\x00\x01\r\n\r\n")).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("path", ["/", "/refused"])
async def test_a_body_that_does_not_come(port: int, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """It is not waited for, though a byte comes now and then, and though it has been answered already."""
    monkeypatch.setattr(http_protocol, "BODY_PERIOD_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    writer.write(f"POST {path} HTTP/1.1\r\nhost: h\r\ncontent-length: 1000000\r\n\r\nx".encode())
    trickling = asyncio.create_task(trickle(writer))
    await asyncio.wait_for(read_all(reader), 30)

    trickling.cancel()
    await close(writer)


@pytest.mark.parametrize("header", ["content-length: 9999999", "transfer-encoding: chunked", f"x: {'y' * 10_000}"])
async def test_what_can_become_no_websocket(port: int, header: str) -> None:
    """It is refused at once."""
    headers = f"host: h\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n{header}"

    answer = await exchange(port, f"GET / HTTP/1.1\r\n{headers}\r\n\r\n".encode())

    assert answer.startswith(b"HTTP/1.1 400")


async def test_a_long_body_that_comes(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many periods it takes, it is read to its end."""
    monkeypatch.setattr(http_protocol, "BODY_PERIOD_S", 0.05)
    monkeypatch.setattr(http_protocol, "LEAST_BODY_BYTES", 1)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    writer.write(b"POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 20\r\n\r\n")
    for _ in range(20):
        writer.write(b"x")
        await asyncio.sleep(0.01)
    answer = await asyncio.wait_for(reader.read(), 30)

    assert answer.endswith(b"3 20")
    await close(writer)


async def test_an_answer_that_nobody_takes(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not kept for ever: the connection is gone, and who reads then finds that out."""
    monkeypatch.setattr(http_protocol, "SEND_PERIOD_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    lost: asyncio.Event = asyncio.Event()
    note = BoundedHttp.connection_lost
    monkeypatch.setattr(BoundedHttp, "connection_lost", lambda self, error: (note(self, error), lost.set()))

    writer.write(b"GET /long HTTP/1.1\r\nhost: h\r\n\r\n")
    await asyncio.wait_for(lost.wait(), 30)

    await asyncio.wait_for(read_all(reader), 30)
    await close(writer)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def trickle(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x")
        await asyncio.sleep(0.01)


async def read_all(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        while await reader.read(1 << 20):
            pass


HANDSHAKE = (
    b"GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: " + b"A" * 22 + b"==\r\n\r\n"
)


async def test_a_websocket_whose_client_does_not_read(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended, though the client stays; one that reads goes on for longer."""
    monkeypatch.setattr(http_protocol, "SEND_PERIOD_S", 0.2)
    over.clear()
    _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    reading, reading_writer = await asyncio.open_connection("127.0.0.1", port)
    for each in (writer, reading_writer):
        each.write(HANDSHAKE)
    num_bytes = 0
    async with asyncio.timeout(60):
        while not over:
            num_bytes += len(await reading.read(1 << 16))

    reading_writer.write(b"\x88\x80\0\0\0\0")  # a close frame
    before = num_bytes
    num_bytes += len(await reading.read(1 << 16))
    await close(writer)
    await close(reading_writer)
    assert num_bytes > before
