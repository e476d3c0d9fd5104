"""A client for tests that says anything over a connection, and can be gone at any time."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any


class RawClient:
    """A connection on which anything can be said, and which can be cut."""

    def __init__(self, url: str, key: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._address = (host, int(port))
        self._key = key
        self.reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self, limit: int = 65_536, receive_bytes: int | None = None) -> None:
        """Connect; with a small buffer, the server soon notices that nothing is read."""
        connection = socket.socket()
        if receive_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, self._address)
        self.reader, self._writer = await asyncio.open_connection(sock=connection, limit=limit)

    async def say(self, text: str) -> None:
        """Send these bytes."""
        self._writer.write(text.encode())
        await self._writer.drain()

    def head(self, method: str, path: str, *lines: str) -> str:
        """The head of a request, without the empty line at its end."""
        first = [f"{method} {path} HTTP/1.1", "Host: server", f"Authorization: Bearer {self._key}"]
        return "\r\n".join([*first, *lines]) + "\r\n"

    def request(self, method: str, path: str, body: Any) -> str:
        """A whole request with JSON."""
        text = json.dumps(body)
        return self.head(method, path, "Content-Type: application/json", f"Content-Length: {len(text)}") + f"\r\n{text}"

    async def cut(self) -> None:
        """Be gone at once, without a farewell."""
        connection = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()
