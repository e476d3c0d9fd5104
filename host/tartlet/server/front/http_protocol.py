"""HTTP as uvicorn speaks it, with bounds on what a client can make the server wait for, and hold meanwhile.

What comes before a request's body is bounded in length and time, a body in how slowly it may come, and an answer in how
slowly it may be taken. How long bodies may be, `auth.Guard` says.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MAX_HEADER_BYTES = 64 * 1024
MAX_HEADERS = 128
HEADER_TIMEOUT_S = 20.0
"""From a connection's start, or a request's first byte, to the end of its headers."""
BODY_PERIOD_S = 30.0
LEAST_BODY_BYTES = 4096
"""Of a body that is not complete, in each such time in which we read it."""
SEND_PERIOD_S = 60.0
"""A client that takes nothing at all for so long, while there is something for it, is not waited for."""


class BoundedHttp(HttpToolsProtocol):
    """Closes connections whose headers are too long, too many or too slow, or whose bodies or readers are too slow."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._num_headers = 0
        self._timer: asyncio.TimerHandle | None = None
        self._body_bytes = 0  # in this period
        self._body_timer: asyncio.TimerHandle | None = None
        self._unsent_bytes = 0  # at the begin of this period
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, but not for ever."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_timer()
        self._stop_body_timer()
        self._stop_send_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to headers that are not complete; up to one piece more than allowed is taken in."""
        super().data_received(data)
        if self._timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEADER_BYTES:
                self._refuse()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._head_bytes = self._num_headers = 0
        if self._timer is None:
            self._start_timer()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a line that comes after a body."""
        self._num_headers += 1
        if self._num_headers > MAX_HEADERS:
            self._refuse()
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The rest is the body."""
        self._stop_timer()
        if not self.transport.is_closing():
            super().on_headers_complete()
            self._start_body_timer()

    def on_body(self, body: bytes) -> None:
        """Some of the body, whether anybody wants it or not."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The body has come."""
        self._stop_body_timer()
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client takes less than there is for it."""
        super().pause_writing()
        if self._send_timer is None:
            self._start_send_timer()

    def resume_writing(self) -> None:
        """The client has taken most of it."""
        self._stop_send_timer()
        super().resume_writing()

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEADER_TIMEOUT_S, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.close()

    def _start_body_timer(self) -> None:
        self._stop_body_timer()
        self._body_bytes = 0
        self._body_timer = self.loop.call_later(BODY_PERIOD_S, self._check_body)

    def _stop_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _check_body(self) -> None:
        if self._body_bytes >= LEAST_BODY_BYTES or self.flow.read_paused:  # paused: we are slow, not the client
            self._start_body_timer()
        else:
            self.transport.close()

    def _start_send_timer(self) -> None:
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._send_timer = self.loop.call_later(SEND_PERIOD_S, self._check_send)

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _check_send(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent_bytes:
            self._start_send_timer()
        else:
            self.transport.abort()  # `close` would wait until the client has taken all of it

    def _refuse(self) -> None:
        self._stop_timer()
        self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n")
        self.transport.close()


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """Refuses what begins like a WebSocket and is none, such as one with a body or too long a header.

    uvicorn would say nothing to that, and keep the connection for as long as the client likes. So it does with one that
    it has closed, if the client does not take what was sent before: that one is ended here.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._watch: asyncio.TimerHandle | None = None
        self._unsent_bytes = 0  # when it was looked at last
        self._is_paused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look now and then whether the client takes what there is for it."""
        super().connection_made(transport)
        self._watch_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes less than there is for it."""
        super().pause_writing()
        self._is_paused = True

    def resume_writing(self) -> None:
        """The client has taken most of it."""
        super().resume_writing()
        self._is_paused, self._unsent_bytes = False, 0

    def data_received(self, data: bytes) -> None:
        """What has come. The first of it is a whole request: `BoundedHttp` has read that already."""
        super().data_received(data)
        if not self.handshake_initiated and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
            self.transport.close()

    def _watch_soon(self) -> None:
        self._watch = self.loop.call_later(SEND_PERIOD_S, self._look)

    def _look(self) -> None:
        """End a connection of which nothing has been taken since the last look. Of others, pings tell."""
        unsent = self.transport.get_write_buffer_size()
        is_stuck = unsent >= self._unsent_bytes > 0 and (self._is_paused or self.transport.is_closing())
        self._unsent_bytes = unsent
        if is_stuck:
            self.transport.abort()
        else:
            self._watch_soon()
