from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path

import msgspec
import pytest

from tartlet.errors import WireError
from tartlet.server.wire.streams import MessageStream, connect, listen


class Say(msgspec.Struct, frozen=True, tag=True):
    """A message."""

    text: str


async def echo(stream: MessageStream[Say]) -> None:
    while True:
        stream.send(await stream.receive())
        await stream.drain()


async def read_all(stream: MessageStream[Say]) -> None:
    while True:
        await stream.receive()


async def test_messages_cross_in_both_directions(socket_path: Path) -> None:
    """Each is answered, in order, large ones too; several connections at once."""
    async with await listen(socket_path, Say, echo):
        streams = [await connect(socket_path, Say) for _ in range(3)]
        texts = ["", "a", "b" * 300_000, "c"]
        for stream in streams:
            for text in texts:
                stream.send(Say(text))
        for stream in streams:
            assert [(await stream.receive()).text for _ in texts] == texts
            await stream.close()


async def test_who_is_gone_is_a_closed_connection(socket_path: Path) -> None:
    """Of the other end, and of one's own; nobody listening is the same."""

    async def hang_up(stream: MessageStream[Say]) -> None:
        await stream.receive()

    with pytest.raises(WireError) as nobody:
        await connect(socket_path, Say)
    async with await listen(socket_path, Say, hang_up):
        stream = await connect(socket_path, Say)
        stream.send(Say("bye"))
        with pytest.raises(WireError) as gone:
            await stream.receive()
        await stream.close()
        with pytest.raises(WireError) as own:
            stream.send(Say("more"))

    assert {nobody.value.code, gone.value.code, own.value.code} == {"closed"}


@pytest.mark.parametrize(
    "data", [b"\xff\xff\xff\xff", b"\x03\x00\x00\x00\xc1\xc1\xc1", b"\x09\x00\x00\x00abc"], ids=["huge", "bad", "cut"]
)
async def test_a_bad_frame_ends_its_connection_and_no_other(socket_path: Path, data: bytes) -> None:
    """Who sends it is hung up on; the others are served."""
    async with await listen(socket_path, Say, echo):
        good = await connect(socket_path, Say)
        with socket.socket(socket.AF_UNIX) as raw:
            raw.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(raw, str(socket_path))
            await loop.sock_sendall(raw, data)
            raw.shutdown(socket.SHUT_WR)
            assert await loop.sock_recv(raw, 100) == b""
        good.send(Say("still here"))
        assert await good.receive() == Say("still here")
        await good.close()


async def test_who_does_not_read_is_hung_up_on(socket_path: Path) -> None:
    """What waits is bounded; then the connection is closed."""
    failed = asyncio.get_running_loop().create_future()

    async def talk(stream: MessageStream[Say]) -> None:
        try:
            while True:
                stream.send(Say("x" * 50_000))
        except WireError as error:
            failed.set_result(error)

    async with await listen(socket_path, Say, talk, most_unsent=200_000):
        stream = await connect(socket_path, Say)
        assert (await failed).code == "slow_reader"
        with pytest.raises(WireError, match="closed"):
            await read_all(stream)
        await stream.close()


async def test_a_message_that_cannot_be_sent_leaves_the_connection(socket_path: Path) -> None:
    """Its sender hears why, and can go on."""
    async with await listen(socket_path, Say, echo):
        stream = await connect(socket_path, Say, most_frame=1000)
        with pytest.raises(WireError, match="at most 1,000"):
            stream.send(Say("x" * 1000))
        stream.send(Say("x"))
        assert await stream.receive() == Say("x")
        await stream.close()


async def test_a_wait_that_is_cancelled_loses_nothing(socket_path: Path) -> None:
    """Cancelled in the middle of a frame, the next wait gets all of it."""
    parts: asyncio.Queue[bytes] = asyncio.Queue()

    async def send_parts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await parts.get():
            writer.write(part)
            await writer.drain()
        writer.close()

    body = msgspec.msgpack.encode(Say("whole"))
    async with await asyncio.start_unix_server(send_parts, socket_path):
        stream = await connect(socket_path, Say)
        for part in (len(body).to_bytes(4, "little"), body[:3]):
            parts.put_nowait(part)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stream.receive(), 0.05)
        parts.put_nowait(body[3:])
        assert await stream.receive() == Say("whole")
        parts.put_nowait(b"")
        await stream.close()


async def test_closing_does_not_wait_for_who_does_not_read(socket_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, what was sent is given up."""
    monkeypatch.setattr("tartlet.server.wire.streams.CLOSE_SECONDS", 0.01)
    served = asyncio.Event()

    async def keep(stream: MessageStream[Say]) -> None:
        stream.send(Say("x" * 5_000_000))
        await stream.close()
        served.set()

    async with await listen(socket_path, Say, keep):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(str(socket_path))
            await served.wait()
