from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from tartlet.server.wire.frames import Frames
from tartlet.server.worker.connection import Connection
from tartlet.server.worker.messages import Cancel, Logged, Printed, ToFront, ToWorker

MOST = 1 << 20


class Pair:
    """The front's end, a worker's end, and what has come to each."""

    def __init__(self, front: Connection, worker: Connection) -> None:
        self.front, self.worker = front, worker
        self.at_front: list[Any] = []
        self.at_worker: list[Any] = []
        self.serving = [
            asyncio.create_task(front.serve(self.at_front.append)),
            asyncio.create_task(worker.serve(self.at_worker.append)),
        ]

    async def ended(self) -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*self.serving)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    ours, theirs = socket.socketpair()
    pair = Pair(await Connection.open(ours, ToFront, MOST), await Connection.open(theirs, ToWorker, MOST))
    yield pair
    pair.front.close()
    pair.worker.close()
    await pair.ended()


async def test_messages_come_in_order_and_whole(pair: Pair) -> None:
    """Both ways, of any size, and what was sent before the end."""
    sent = [Printed(number, "é" * size) for number, size in enumerate((0, 1, 70_000, 500_000, 3))]
    for message in sent:
        pair.worker.send(message)
    pair.front.send(Cancel(1))
    while len(pair.at_front) < len(sent):
        await asyncio.sleep(0)
    pair.worker.send(Printed(9, "last"))
    pair.worker.close()
    await pair.ended()

    assert pair.at_front == [*sent, Printed(9, "last")]
    assert pair.at_worker == [Cancel(1)]
    pair.worker.send(Printed(10, "nobody hears this"))


async def test_what_is_sent_waits_for_the_other_end() -> None:
    """`drain` comes back when it has been read, or never will be."""
    ours, theirs = socket.socketpair()
    connection = await Connection.open(ours, ToFront, MOST)
    serving = asyncio.create_task(connection.serve(lambda _: None))
    for _ in range(100):
        connection.send(Printed(1, "x" * 100_000))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(connection.drain())
    done, _ = await asyncio.wait([waiting], timeout=0.01)
    assert not done

    theirs.close()
    await asyncio.wait_for(waiting, 60)
    await asyncio.wait_for(serving, 60)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\x7f",
        b"\x01\x00\x00\x00\xc1",
        b"\x04\x00\x00\x00\x93\xa1x\x01",
        len(body := msgspec.msgpack.encode(Cancel(1))).to_bytes(4, "little") + body,
    ],
    ids=["too long", "no msgpack", "no message", "one for the other side"],
)
async def test_what_is_no_message_closes_the_connection(data: bytes) -> None:
    """The other side is not trusted."""
    ours, theirs = socket.socketpair()
    connection = await Connection.open(ours, ToFront, MOST)
    with theirs:
        theirs.sendall(data)
        await asyncio.wait_for(connection.serve(lambda message: pytest.fail(str(message))), 60)


async def test_a_fault_in_taking_one_in_closes_the_connection(pair: Pair) -> None:
    """Rather than that something is lost in silence."""

    def fail(message: Any) -> None:
        raise ValueError("a fault")

    await asyncio.sleep(0)
    pair.front._on_message = fail
    pair.worker.send(Printed(1, "text"))
    await pair.ended()


@hypothesis.given(st.binary(max_size=200), st.integers(0, 30))
def test_whatever_comes_is_a_message_or_the_end(data: bytes, place: int) -> None:
    """A good message with anything in it."""

    async def hear() -> None:
        ours, theirs = socket.socketpair()
        connection = await Connection.open(ours, ToFront, MOST)
        frame = bytes(Frames(ToFront).pack(Logged(1, "info", "a line")))
        with theirs:
            theirs.sendall(frame[:place] + data + frame[place:])
        await asyncio.wait_for(connection.serve(lambda message: None), 60)

    asyncio.run(hear())
