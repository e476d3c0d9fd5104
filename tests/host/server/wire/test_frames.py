from __future__ import annotations

import resource

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet.errors import WireError
from tartlet.server.wire.frames import HEADER_BYTES, MOST_REASON, Frames


class Say(msgspec.Struct, frozen=True, tag=True):
    """A message."""

    text: str
    numbers: tuple[int, ...] = ()


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Another one."""


MESSAGES = st.one_of(
    st.builds(Say, st.text(), st.lists(st.integers(-(1 << 63), (1 << 64) - 1)).map(tuple)), st.builds(Stop)
)


@given(MESSAGES)
def test_a_message_comes_back_as_it_was(message: Say | Stop) -> None:
    """Packed and unpacked, it is equal; the header says how long it is."""
    frames: Frames[Say | Stop] = Frames(Say | Stop)

    frame = frames.pack(message)

    assert frames.body_length(frame[:HEADER_BYTES]) == len(frame) - HEADER_BYTES
    assert frames.unpack(frame[HEADER_BYTES:]) == message


@given(st.binary())
def test_whatever_comes_is_a_message_or_a_typed_error(body: bytes) -> None:
    """Any bytes are read as a message, or refused as malformed."""
    frames: Frames[Say | Stop] = Frames(Say | Stop)

    try:
        message: object = frames.unpack(body)
    except WireError as error:
        message = error

    assert isinstance(message, Say | Stop) or (isinstance(message, WireError) and message.code == "malformed")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x91" * 100_000,
        b"\x82\xa4type\xa3Say\xa4text" + b"\x91" * 100_000,
        b"\x82\xa4type\xa3Say\xa1x" + b"\x91" * 100_000,
        b"\x83\xa4type\xa3Say\xa4text\xa0\xa7numbers\xdd\xff\xff\xff\xff",
        b"\x82\xa4type\xa3Say\xa4text\xdb\xff\xff\xff\xff",
        b"\x82\xa4type\xa3Say\xa4text\xa2\xc3\x28",
        msgspec.msgpack.encode({"type": "Other"}),
        msgspec.msgpack.encode({"type": "Say", "text": 1}),
        msgspec.msgpack.encode(Stop()) + b"\x00",
    ],
    ids=["empty", "deep", "deep-text", "deep-unknown", "huge-list", "huge-text", "no-utf8", "tag", "type", "trailing"],
)
def test_a_hostile_message_is_malformed_and_costs_little(body: bytes) -> None:
    """What claims to be deep or huge is refused without the memory that it claims to need."""
    frames: Frames[Say | Stop] = Frames(Say | Stop)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(WireError) as caught:
        frames.unpack(body)

    assert caught.value.code == "malformed"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


def test_an_error_does_not_repeat_much_of_a_message() -> None:
    """A tag of megabytes is cut."""
    frames: Frames[Say | Stop] = Frames(Say | Stop)

    with pytest.raises(WireError) as caught:
        frames.unpack(msgspec.msgpack.encode({"type": "x" * 1_000_000}))

    assert len(caught.value.message) < MOST_REASON + 100


def test_a_frame_that_is_too_large_is_refused_both_ways() -> None:
    """By the one who sends it, and from its header by the one who receives it. The limit itself is allowed."""
    message = Say("x" * 50)
    size = len(msgspec.msgpack.encode(message))
    Frames[Say](Say, size).pack(message)

    with pytest.raises(WireError, match=f"{size} bytes; at most {size - 1}") as sent:
        Frames[Say](Say, size - 1).pack(message)
    with pytest.raises(WireError) as received:
        Frames[Say](Say, 100).body_length(b"\xff\xff\xff\xff")

    assert sent.value.code == received.value.code == "frame_too_large"


def test_what_msgpack_cannot_hold_is_a_typed_error() -> None:
    """A number beyond 64 bits, and half of a surrogate pair."""
    frames: Frames[Say] = Frames(Say)

    for message in (Say("", (1 << 64,)), Say("\ud800")):
        with pytest.raises(WireError) as caught:
            frames.pack(message)
        assert caught.value.code == "malformed"
