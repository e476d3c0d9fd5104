"""Frames: four bytes, little-endian, that say how many follow, then one message as msgpack."""

from __future__ import annotations

import struct
from typing import Any, Generic, TypeVar

import msgspec

from tartlet.errors import WireError

MOST_FRAME_BYTES = 64 << 20
"""Of a message, if nothing else is said."""
HEADER_BYTES = 4
MOST_REASON = 200
"""Characters of what is told of a message that cannot be read."""

_LENGTH = struct.Struct("<I")

Received = TypeVar("Received")


class Frames(Generic[Received]):
    """Messages to frames, and back. From any thread.

    Args:
        received: The type of what comes in: a struct, or a union of tagged structs.
        most_bytes: The most that a message may take, in and out.
    """

    def __init__(self, received: Any, most_bytes: int = MOST_FRAME_BYTES) -> None:
        self._decoder: msgspec.msgpack.Decoder[Received] = msgspec.msgpack.Decoder(received)
        self._encoder = msgspec.msgpack.Encoder()
        self._most_bytes = most_bytes

    def pack(self, message: msgspec.Struct) -> bytearray:
        """Give the whole frame of a message.

        Raises:
            WireError: `frame_too_large`; or `malformed`, if the message has what msgpack cannot hold.
        """
        frame = bytearray(HEADER_BYTES)
        try:
            self._encoder.encode_into(message, frame, HEADER_BYTES)
        except (TypeError, ValueError, OverflowError) as error:
            raise WireError(f"a {type(message).__name__} cannot be sent: {error}", code="malformed") from None
        num_bytes = self._checked(len(frame) - HEADER_BYTES)
        _LENGTH.pack_into(frame, 0, num_bytes)
        return frame

    def body_length(self, header: bytes | bytearray | memoryview) -> int:
        """Read a frame's first four bytes. Raises WireError, `frame_too_large`."""
        return self._checked(_LENGTH.unpack(header)[0])

    def unpack(self, body: bytes | bytearray | memoryview) -> Received:
        """Read the message. Raises WireError, `malformed`: it is none of those that are expected here."""
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, RecursionError, MemoryError, UnicodeDecodeError) as error:
            reason = str(error)[:MOST_REASON]  # it may repeat what was sent
            raise WireError(f"a message of {len(body):,} bytes cannot be read: {reason}", code="malformed") from None

    def _checked(self, num_bytes: int) -> int:
        if num_bytes > self._most_bytes:
            message = f"a message takes {num_bytes:,} bytes; at most {self._most_bytes:,} are allowed"
            raise WireError(message, code="frame_too_large")
        return num_bytes


def slow_reader(unsent: int, most_unsent: int) -> WireError:
    """The error of a connection whose other end does not read what it is sent."""
    message = f"the other end of a connection does not read: {unsent:,} bytes wait, {most_unsent:,} may"
    return WireError(message, code="slow_reader")


def closed(error: Exception | None = None) -> WireError:
    """The error of a connection that is over, and why if that is known."""
    reason = f": {error}" if isinstance(error, OSError | ValueError) else ""
    return WireError(f"the connection is closed{reason}", code="closed")
