"""Server-sent events: an answer that goes on for as long as there is something to tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tartlet.server.raw_json import to_json

SEND_TIMEOUT_S = 60.0
"""How long a client may take nothing at all, while there is something for it, before it counts as gone."""
PING = b": ping\n\n"


def sse_event(kind: str, data: Mapping[str, Any], number: int | None = None) -> bytes:
    """One event, of a type, with its data as JSON; the number is what a client sends as `Last-Event-ID`."""
    lines = [] if number is None else [f"id: {number}"]
    lines += [f"event: {kind}", f"data: {to_json(data)}"]
    return ("\n".join(lines) + "\n\n").encode()


class EventStream(Response):
    """Sends pieces as they come, and in silence now and then a comment, which tells that the stream is alive.

    When the client goes or takes nothing for `SEND_TIMEOUT_S`, the pieces are closed, wherever they wait.

    Args:
        pieces: whole events, as bytes.
        ping_s: after which silence the comment comes.
        holding: entered for as long as it is sent, such as `LiveRun.held`.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        *,
        ping_s: float,
        holding: AbstractContextManager[None] | None = None,
    ) -> None:
        self._pieces = pieces
        self._holding = holding or nullcontext()
        self._ping_s = ping_s
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it, or as much as the client takes."""
        with self._holding:
            await self._send_unless_gone(receive, send)

    async def _send_unless_gone(self, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_gone(receive))
        sending = asyncio.create_task(self._send_all(send))
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, sending):
                task.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)
            await self._pieces.aclose()
        if not sending.cancelled():
            error = sending.exception()
            if error is not None and not isinstance(error, TimeoutError | OSError):
                raise error

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        waiting: asyncio.Task[bytes] | None = None
        try:
            while True:
                waiting = waiting or asyncio.ensure_future(anext(self._pieces))
                await asyncio.wait({waiting}, timeout=self._ping_s)
                piece = PING
                if waiting.done():
                    piece, waiting = waiting.result(), None
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        except StopAsyncIteration:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
