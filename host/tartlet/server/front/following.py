"""Runs as clients follow them: they wait for the end, or hear events as they come. Who goes lets go of the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request

from tartlet.server.front.errors import CLIENT_CLOSED_REQUEST, ApiError
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.run_events import read_fields
from tartlet.server.front.shapes import live_run_fields
from tartlet.server.front.sse import sse_event


async def wait_for(run: LiveRun, request: Request) -> None:
    """Wait for a run's end. Raises ApiError if the client goes before it; the run has been let go of then."""
    with run.held():
        ended = asyncio.create_task(run.ended())
        gone = asyncio.create_task(_gone(request))
        try:
            await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (ended, gone):
                task.cancel()
            await asyncio.gather(ended, gone, return_exceptions=True)
    if not run.has_ended:
        raise ApiError(CLIENT_CLOSED_REQUEST, "client_closed_request", "the client is gone")


async def messages_of(run: LiveRun, after: int | None = None) -> AsyncGenerator[dict[str, Any], None]:
    """What a client hears of a run, as JSON, until its end, which is `finished`. Holds the run as long as it is read.

    Args:
        run: the run.
        after: the number of the last event that the client has heard; None: it has heard nothing, and gets `started`.
    """
    with run.held():
        if after is None:
            yield {"type": "started", "seq": 0, "run": live_run_fields(run)}
        async for read in run.follow(after or 0):
            yield read_fields(read)
        yield {"type": "finished", "seq": run.last_number, "run": live_run_fields(run)}


async def stream_of(run: LiveRun, after: int | None = None) -> AsyncGenerator[bytes, None]:
    """The same as server-sent events."""
    messages = messages_of(run, after)
    try:
        async for message in messages:
            yield sse_event(message["type"], message, message["seq"])
    finally:
        await messages.aclose()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
