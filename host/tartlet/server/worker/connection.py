"""Messages both ways between the front and a worker, on the event loop of each."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, cast

import msgspec

from tartlet.errors import WireError
from tartlet.server.wire.frames import HEADER_BYTES, Frames

logger = logging.getLogger(__name__)

_MOST_WAITING_BYTES = 1 << 20
"""Written, and not taken by the other side; more has to wait."""


class Connection(asyncio.Protocol):
    """Frames that come and go many at a time: what is sent within one turn of the loop leaves with one system call.

    The other side is not trusted: a message that is too long, or is none of those that are expected, closes the
    connection.

    Args:
        received: The type of the messages that come.
        most_bytes: Of one message, either way.
    """

    def __init__(self, received: Any, most_bytes: int) -> None:
        self._frames: Frames[Any] = Frames(received, most_bytes)
        self._on_message: Callable[[Any], None] | None = None
        self._incoming = bytearray()
        self._outgoing: list[bytearray] = []
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._can_send = asyncio.Event()
        self._can_send.set()
        self._closed = asyncio.Event()

    @classmethod
    async def open(cls, end: socket.socket, received: Any, most_bytes: int) -> Connection:
        """Take over a connected socket."""
        loop = asyncio.get_running_loop()
        connection = cls(received, most_bytes)
        await loop.create_connection(lambda: connection, sock=end)
        return connection

    async def serve(self, on_message: Callable[[Any], None]) -> None:
        """Call `on_message` with each message that comes, until the connection is closed. If it raises, that is now."""
        self._on_message = on_message
        self._take_in()
        await self._closed.wait()

    # ---- To send ----

    def send(self, message: msgspec.Struct) -> None:
        """Send a message soon; nothing happens if the connection is closed.

        Raises WireError, as `Frames.pack`, for a message that cannot be sent; nothing has been sent then.
        """
        frame = self._frames.pack(message)
        if self._closed.is_set():
            return
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(frame)

    async def drain(self) -> None:
        """Wait until the other side takes what is sent, or the connection is closed."""
        await self._can_send.wait()

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if outgoing and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(outgoing))

    # ---- The end ----

    def close(self) -> None:
        """Send what is left, as far as the other side takes it, and close. Idempotent."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    # ---- asyncio.Protocol ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast("asyncio.Transport", transport)  # which uvloop's is not by its class
        self._transport.set_write_buffer_limits(high=_MOST_WAITING_BYTES)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self._incoming += data
        if self._on_message is not None:
            self._take_in()

    def _take_in(self) -> None:
        try:
            used = self._take_messages()
        except Exception as error:  # whatever the other side does costs this connection, and nothing else
            logger.error("the connection is closed: %s", error, exc_info=not isinstance(error, WireError))
            assert self._transport is not None
            self._transport.abort()
            self._on_message = None
            return
        del self._incoming[:used]

    def _take_messages(self) -> int:
        """Hand over the messages that are complete; the number of bytes that they took."""
        assert self._on_message is not None
        begin, view = 0, memoryview(self._incoming)
        with view:
            while len(view) - begin >= HEADER_BYTES:
                end = begin + HEADER_BYTES + self._frames.body_length(view[begin : begin + HEADER_BYTES])
                if end > len(view):
                    break
                with view[begin + HEADER_BYTES : end] as body:
                    message = self._frames.unpack(body)
                self._on_message(message)
                begin = end
        return begin

    def pause_writing(self) -> None:
        """Called by asyncio."""
        self._can_send.clear()

    def resume_writing(self) -> None:
        """Called by asyncio."""
        self._can_send.set()

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio."""
        self._closed.set()
        self._can_send.set()
