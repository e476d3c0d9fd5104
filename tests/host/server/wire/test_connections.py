from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from tartlet.errors import WireError
from tartlet.server.wire import streams
from tartlet.server.wire.connections import Connection, Listener, connect
from tartlet.server.wire.frames import Frames


class Say(msgspec.Struct, frozen=True, tag=True):
    """A message."""

    text: str


@contextmanager
def a_pair(most_unsent: int = 1 << 20) -> Iterator[tuple[Connection[Say], Connection[Say]]]:
    """Both ends of a connection."""
    left, right = socket.socketpair(socket.AF_UNIX)
    frames: Frames[Say] = Frames(Say)
    with (
        closing(Connection(left, frames, most_unsent)) as one,
        closing(Connection(right, frames, most_unsent)) as other,
    ):
        yield one, other


def repeat(action: Callable[[], object]) -> None:
    """Do it until it fails."""
    for _ in range(10_000):
        action()


def test_sending_does_not_wait_and_keeps_the_order() -> None:
    """Far more than the socket takes is sent at once; it arrives whole and in order when it is read."""
    texts = [f"{number} {'x' * (number % 7 * 10_000)}" for number in range(300)]
    with a_pair(most_unsent=64 << 20) as (one, other):
        for text in texts:
            one.send(Say(text))

        assert [other.receive().text for _ in texts] == texts

        one.send(Say("again"))  # the writing thread has ended, or is about to
        assert other.receive().text == "again"


def test_many_threads_may_send() -> None:
    """Frames of several threads do not mix."""
    with a_pair(most_unsent=64 << 20) as (one, other):
        senders = [
            threading.Thread(target=lambda name=name: [one.send(Say(f"{name}{'x' * 30_000}")) for _ in range(50)])
            for name in "abcd"
        ]
        for sender in senders:
            sender.start()
        received = [other.receive().text for _ in range(200)]
        for sender in senders:
            sender.join()

    assert sorted({text[0] for text in received}) == list("abcd")
    assert all(text[1:] == "x" * 30_000 for text in received)


def test_who_does_not_read_is_hung_up_on() -> None:
    """What waits is bounded; both ends hear that the connection is over."""
    with a_pair(most_unsent=100_000) as (one, other):
        with pytest.raises(WireError) as slow:
            repeat(lambda: one.send(Say("x" * 10_000)))
        with pytest.raises(WireError) as after:
            one.send(Say("more"))
        with pytest.raises(WireError) as there:
            repeat(other.receive)

    assert [slow.value.code, after.value.code, there.value.code] == ["slow_reader", "closed", "closed"]


def test_shutting_down_ends_a_wait() -> None:
    """From another thread, at both ends."""
    with a_pair() as (one, other):
        ends: list[str] = []

        def wait(end: Connection[Say]) -> None:
            with pytest.raises(WireError) as caught:
                end.receive()
            ends.append(caught.value.code)

        waiting = [threading.Thread(target=wait, args=(end,)) for end in (one, other)]
        for thread in waiting:
            thread.start()
        one.shut_down()
        for thread in waiting:
            thread.join()

    assert ends == ["closed", "closed"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff\xff\xff\xff", "frame_too_large"),
        (b"\x03\x00\x00\x00\xc1\xc1\xc1", "malformed"),
        (b"\x09\x00\x00\x00abc", "closed"),
        (b"\x09\x00", "closed"),
        (b"", "closed"),
    ],
    ids=["huge", "bad", "cut-body", "cut-header", "nothing"],
)
def test_a_bad_frame_ends_the_connection(data: bytes, code: str) -> None:
    """With a typed error here; the other end is hung up on."""
    left, right = socket.socketpair(socket.AF_UNIX)
    with closing(Connection(left, Frames[Say](Say))) as one, right:
        right.sendall(data)
        right.shutdown(socket.SHUT_WR)
        with pytest.raises(WireError) as caught:
            one.receive()

        assert caught.value.code == code
        assert right.recv(1) == b""
        with pytest.raises(WireError, match="closed"):
            one.send(Say("more"))


def test_a_listener_accepts_until_it_is_shut_down(socket_path: Path) -> None:
    """Connections are apart; nobody can connect afterwards."""
    ends: list[str] = []

    def wait() -> None:
        with pytest.raises(WireError) as caught:
            listener.accept()
        ends.append(caught.value.code)

    with closing(Listener[Say](socket_path, Say)) as listener:
        with (
            closing(connect(socket_path, Say)) as one,
            closing(connect(socket_path, Say)) as two,
            closing(listener.accept()) as first,
            closing(listener.accept()) as second,
        ):
            one.send(Say("one"))
            two.send(Say("two"))
            assert (first.receive(), second.receive()) == (Say("one"), Say("two"))
        waiting = threading.Thread(target=wait)
        waiting.start()
        listener.shut_down()
        waiting.join()
    assert ends == ["closed"]
    with pytest.raises(WireError, match="closed"):
        connect(socket_path, Say)


async def test_threads_and_asyncio_understand_each_other(socket_path: Path) -> None:
    """The frames are the same."""
    with closing(Listener[Say](socket_path, Say)) as listener:
        stream = await streams.connect(socket_path, Say)
        with closing(listener.accept()) as connection:
            stream.send(Say("to the thread"))
            await stream.drain()
            assert connection.receive() == Say("to the thread")
            connection.send(Say("to the loop"))
            assert await stream.receive() == Say("to the loop")
        await stream.close()
