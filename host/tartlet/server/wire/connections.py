"""Messages over a Unix socket, for threads: one that reads, and any that send and must not wait."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from tartlet.errors import WireError
from tartlet.server.wire.frames import HEADER_BYTES, MOST_FRAME_BYTES, Frames, closed, slow_reader

MOST_UNSENT_BYTES = 64 << 20
"""That may wait for a reader who is slow, before the connection is shut down."""

_BACKLOG = 128
_PAUSE_SECONDS = 0.1  # before connections are accepted again, after there were too many open files
_READ_BYTES = 1 << 16

Received = TypeVar("Received")


class Connection(Generic[Received]):
    """One end of a connection.

    `send` and `shut_down` may be called from any thread; `receive` and `close` are the reading thread's. What the
    socket does not take at once is sent by a thread that lives until nothing is left.
    """

    def __init__(self, sock: socket.socket, frames: Frames[Received], most_unsent: int = MOST_UNSENT_BYTES) -> None:
        self._socket = sock
        self._file = sock.makefile("rb", buffering=_READ_BYTES)
        self._frames = frames
        self._most_unsent = most_unsent
        self._lock = threading.Lock()  # guards what follows, and the order of what is sent
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._writer: threading.Thread | None = None
        self._is_over = False

    def send(self, message: msgspec.Struct) -> None:
        """Send a message. Does not wait for the other end.

        Raises:
            WireError: `closed`, or `slow_reader`: too much waits to be read, and the connection is shut down now. Or as
                `Frames.pack`; then the connection stays, and nothing has been sent.
        """
        frame = memoryview(self._frames.pack(message))
        with self._lock:
            if self._is_over:
                raise closed()
            if not self._unsent:
                frame = frame[self._send_now(frame) :]
            if not frame:
                return
            unsent = self._unsent_bytes
            if unsent and unsent + len(frame) > self._most_unsent:
                self._shut_down()
                raise slow_reader(unsent, self._most_unsent)
            self._unsent.append(frame)
            self._unsent_bytes += len(frame)
            if self._writer is None:
                self._writer = threading.Thread(target=self._send_rest, name="tartlet-wire", daemon=True)
                self._writer.start()

    def receive(self) -> Received:
        """Wait for the next message.

        Raises:
            WireError: `closed`: the other end is gone, or `shut_down` was called; `malformed` or `frame_too_large`:
                the connection is shut down now.
        """
        try:
            header = self._read(HEADER_BYTES)
            return self._frames.unpack(self._read(self._frames.body_length(header)))
        except WireError:
            self.shut_down()
            raise

    def shut_down(self) -> None:
        """End the connection for both ends, from any thread. What has not been sent is dropped. Idempotent."""
        with self._lock:
            self._shut_down()

    def close(self) -> None:
        """Shut down, and free the socket. By the thread that reads, or when none does. Idempotent."""
        self.shut_down()
        writer = self._writer
        if writer is not None:
            writer.join()
        self._file.close()
        self._socket.close()

    def _shut_down(self) -> None:
        self._is_over = True
        self._unsent.clear()
        self._unsent_bytes = 0
        with contextlib.suppress(OSError):  # the other end was faster, or it is closed
            self._socket.shutdown(socket.SHUT_RDWR)

    def _send_now(self, frame: memoryview) -> int:
        """Send what the socket takes without waiting, and tell how much that was."""
        try:
            return self._socket.send(frame, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0
        except OSError as error:
            self._shut_down()
            raise closed(error) from None

    def _send_rest(self) -> None:
        """Send what waits, until nothing does: the life of the writing thread."""
        while True:
            with self._lock:
                if not self._unsent:
                    self._writer = None
                    return
                frame = self._unsent[0]  # it stays: meanwhile nobody else may send
            try:
                self._socket.sendall(frame)
            except OSError:
                self.shut_down()
            with self._lock:
                if self._unsent:
                    self._unsent_bytes -= len(self._unsent.popleft())

    def _read(self, num_bytes: int) -> bytes:
        try:
            data: bytes = self._file.read(num_bytes)
        except (OSError, ValueError) as error:  # ValueError: the file is closed
            raise closed(error) from None
        if len(data) < num_bytes:
            raise closed()
        return data


class Listener(Generic[Received]):
    """Where connections arrive: a Unix socket at `path`, which must not exist yet.

    Args:
        path: Of the socket.
        received: The type of messages that come in.
        most_frame: Bytes of a message, at most.
        most_unsent: Bytes that may wait to be read by the other end of a connection.
    """

    def __init__(
        self,
        path: Path,
        received: Any,
        *,
        most_frame: int = MOST_FRAME_BYTES,
        most_unsent: int = MOST_UNSENT_BYTES,
    ) -> None:
        self._frames: Frames[Received] = Frames(received, most_frame)
        self._most_unsent = most_unsent
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(str(path))
            self._socket.listen(_BACKLOG)
        except BaseException:
            self._socket.close()
            raise

    def accept(self) -> Connection[Received]:
        """Wait for a connection. Raises WireError, `closed`, after `shut_down`."""
        while True:
            try:
                sock, _ = self._socket.accept()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED):
                    raise closed(error) from None
                time.sleep(_PAUSE_SECONDS)
            else:
                return Connection(sock, self._frames, self._most_unsent)

    def shut_down(self) -> None:
        """Let `accept` end. From any thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Free the socket. By the thread that accepts, or when none does."""
        self._socket.close()


def connect(
    path: Path, received: Any, *, most_frame: int = MOST_FRAME_BYTES, most_unsent: int = MOST_UNSENT_BYTES
) -> Connection[Any]:
    """Open a connection to who listens at `path`; `received`: the type of messages that come from there.

    Raises:
        WireError: `closed`: nobody listens there.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(str(path))
    except OSError as error:
        sock.close()
        raise closed(error) from None
    return Connection(sock, Frames(received, most_frame), most_unsent)
