"""Runs as clients follow them: they wait for the end, or hear events as they come. Who goes lets go of the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from tartlet.server.front.errors import CLIENT_CLOSED_REQUEST, ApiError
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.run_events import read_fields
from tartlet.server.front.shapes import live_run_fields
from tartlet.server.front.sse import EventStream, sse_event

T = TypeVar("T")


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do work for a client, as long as it is there. Raises ApiError if it goes; the work has been cancelled then."""
    doing = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({doing, gone}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
    finally:
        for task in (doing, gone):
            task.cancel()
        await asyncio.gather(doing, gone, return_exceptions=True)
    raise ApiError(CLIENT_CLOSED_REQUEST, "client_closed_request", "the client is gone")


async def wait_for(run: LiveRun, request: Request) -> None:
    """Wait for a run's end. Raises ApiError if the client goes before it; the run has been let go of then."""
    with run.held():
        await unless_gone(request, run.ended())


async def messages_of(run: LiveRun, after: int | None = None) -> AsyncGenerator[dict[str, Any], None]:
    """What a client hears of a run, as JSON, until its end, which is `finished`.

    Args:
        run: the run.
        after: the number of the last event that the client has heard; None: it has heard nothing, and gets `started`.
    """
    if after is None:
        yield {"type": "started", "seq": 0, "run": live_run_fields(run)}
    async for read in run.follow(after or 0):
        yield read_fields(read)
    yield {"type": "finished", "seq": run.last_number, "run": live_run_fields(run)}


def stream_of(run: LiveRun, ping_s: float, after: int | None = None) -> EventStream:
    """The same as server-sent events. The run is held as long as the client is there."""
    return EventStream(_events_of(run, after), ping_s=ping_s, holding=run.held())


async def _events_of(run: LiveRun, after: int | None) -> AsyncGenerator[bytes, None]:
    messages = messages_of(run, after)
    try:
        async for message in messages:
            yield sse_event(message["type"], message, message["seq"])
    finally:
        await messages.aclose()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
