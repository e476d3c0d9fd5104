"""Messages over a Unix socket, on an asyncio loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from tartlet.errors import WireError
from tartlet.server.wire.frames import HEADER_BYTES, MOST_FRAME_BYTES, Frames, closed, slow_reader

MOST_UNSENT_BYTES = 64 << 20
"""That may wait for a reader who is slow, before the connection is closed."""
CLOSE_SECONDS = 1.0
"""For so long what was sent last may take to be read when a connection is closed."""

Received = TypeVar("Received")


class MessageStream(Generic[Received]):
    """One end of a connection. Each direction is for one task at a time; `close` may be called at any time.

    After an error the connection is closed: there is nothing to be read after a frame that cannot be.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frames: Frames[Received], most_unsent: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = frames
        self._most_unsent = most_unsent
        self._body_length: int | None = None  # of a frame whose header has been read

    def send(self, message: msgspec.Struct) -> None:
        """Send a message, without waiting until it has been read.

        Raises:
            WireError: `closed`, or `slow_reader`: too much waits to be read, and the connection is closed now. Or as
                `Frames.pack`; then the connection stays, and nothing has been sent.
        """
        if self._writer.is_closing():
            raise closed()
        frame = self._frames.pack(message)
        unsent = self._writer.transport.get_write_buffer_size()
        if unsent and unsent + len(frame) > self._most_unsent:
            self._writer.transport.abort()
            raise slow_reader(unsent, self._most_unsent)
        self._writer.write(frame)

    async def drain(self) -> None:
        """Wait until the other end has read most of what was sent. Raises WireError, `closed`."""
        try:
            await self._writer.drain()
        except OSError as error:
            raise closed(error) from None

    async def receive(self) -> Received:
        """Wait for the next message.

        Raises:
            WireError: `closed`: the other end is gone; `malformed` or `frame_too_large`.

        Cancelling this wait loses no message.
        """
        try:
            if self._body_length is None:
                self._body_length = self._frames.body_length(await self._reader.readexactly(HEADER_BYTES))
            body = await self._reader.readexactly(self._body_length)
            self._body_length = None
            return self._frames.unpack(body)
        except (asyncio.IncompleteReadError, OSError) as error:
            self._writer.close()
            raise closed(error) from None
        except WireError:
            self._writer.close()
            raise

    async def close(self) -> None:
        """Close the connection, once what was sent has been read, or that takes too long. Idempotent."""
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._writer.wait_closed()
        except TimeoutError:
            self._writer.transport.abort()
        except OSError:
            pass  # it is closed

    def abort(self) -> None:
        """Close the connection now, whatever has not been sent. Idempotent."""
        self._writer.transport.abort()


async def connect(
    path: Path, received: Any, *, most_frame: int = MOST_FRAME_BYTES, most_unsent: int = MOST_UNSENT_BYTES
) -> MessageStream[Any]:
    """Open a connection to who listens at `path`; `received`: the type of messages that come from there.

    Raises:
        WireError: `closed`: nobody listens there.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except OSError as error:
        raise closed(error) from None
    return MessageStream(reader, writer, Frames(received, most_frame), most_unsent)


async def listen(
    path: Path,
    received: Any,
    serve: Callable[[MessageStream[Any]], Awaitable[None]],
    *,
    most_frame: int = MOST_FRAME_BYTES,
    most_unsent: int = MOST_UNSENT_BYTES,
) -> asyncio.Server:
    """Listen at `path`, and call `serve` for each connection, which is closed when it returns.

    `serve` may let a WireError out: its connection is over, and no other.
    """
    frames: Frames[Any] = Frames(received, most_frame)

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = MessageStream(reader, writer, frames, most_unsent)
        try:
            with contextlib.suppress(WireError):
                await serve(stream)
        finally:
            await stream.close()

    return await asyncio.start_unix_server(serve_one, path)
