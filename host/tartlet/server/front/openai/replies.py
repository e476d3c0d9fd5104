"""Answers requests with runs: whole, or as a stream. A client that goes away takes its run with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tartlet.errors import TartletError
from tartlet.server.front.errors import CLIENT_CLOSED_REQUEST, ApiError, json_response
from tartlet.server.front.openai.answers import Answering
from tartlet.server.front.openai.shapes import Shape

T = TypeVar("T")

HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""Of streams: nothing in between holds them back."""


async def reply(request: Request, answering: Answering, shape: Shape, *, is_streaming: bool) -> Response:
    """Wait for the answer, or begin to stream it. Raises what went wrong before anything was sent."""
    if not is_streaming:
        with answering.run.held():
            return json_response(shape.whole(await until_gone(request, answering.answer())))
    events = stream(answering, shape)
    try:
        first = await until_gone(request, anext(events))
    except BaseException:
        await events.aclose()
        raise
    return StreamingResponse(_joined(first, events), media_type="text/event-stream", headers=HEADERS)


async def stream(answering: Answering, shape: Shape) -> AsyncGenerator[str, None]:
    """Give the events of an answer. Raises what goes wrong before the first piece; later it is an event."""
    with answering.run.held():
        async with contextlib.aclosing(answering.pieces()) as pieces:
            piece = await anext(pieces, None)
            if piece is None:
                await answering.answer()
            for event in shape.opening():
                yield event
            try:
                while piece is not None:
                    for event in shape.of_piece(piece):
                        yield event
                    piece = await anext(pieces, None)
                last = shape.closing(await answering.answer())
            except TartletError as error:
                last = shape.failing(error)
            for event in last:
                yield event


async def until_gone(request: Request, waiting: Awaitable[T]) -> T:
    """Wait for something as long as the client does. Raises ApiError if it has gone away."""
    task = asyncio.ensure_future(waiting)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ApiError(CLIENT_CLOSED_REQUEST, "client_gone", "the client has gone away")
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _joined(first: str, events: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    try:
        yield first
        async for event in events:
            yield event
    finally:
        await events.aclose()
