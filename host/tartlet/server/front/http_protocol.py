"""HTTP as uvicorn speaks it, with bounds on what comes before a request's body: its length, and the time it takes."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 64 * 1024
MAX_HEADERS = 128
HEADER_TIMEOUT_S = 20.0
"""From a connection's start, or a request's first byte, to the end of its headers."""


class BoundedHttp(HttpToolsProtocol):
    """Closes connections whose headers are too long, too many, or too slow. Bodies are bounded by `auth.Guard`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._num_headers = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, but not for ever."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_timer()
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

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEADER_TIMEOUT_S, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.close()

    def _refuse(self) -> None:
        self._stop_timer()
        self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n")
        self.transport.close()
