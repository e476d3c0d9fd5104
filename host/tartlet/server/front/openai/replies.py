"""Answers requests with runs: whole, or as a stream. A client that goes away takes its run with it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import Response

from tartlet.errors import TartletError
from tartlet.server.front.errors import json_response
from tartlet.server.front.following import unless_gone
from tartlet.server.front.openai.answers import Answering
from tartlet.server.front.openai.shapes import Shape
from tartlet.server.front.sse import EventStream


async def reply(request: Request, answering: Answering, shape: Shape, *, is_streaming: bool, ping_s: float) -> Response:
    """Wait for the answer, or begin to stream it. Raises what went wrong before anything was sent.

    Args:
        request: of the client.
        answering: the run.
        shape: how the answer is written.
        is_streaming: as events.
        ping_s: after which silence a stream says that it is alive.
    """
    if not is_streaming:
        with answering.run.held():
            return json_response(shape.whole(await unless_gone(request, answering.answer())))
    events = stream(answering, shape)
    try:
        first = await unless_gone(request, _next(events))
    except BaseException:
        await events.aclose()
        raise
    return EventStream(_joined(first, events), ping_s=ping_s)


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


async def _next(events: AsyncGenerator[str, None]) -> str:
    return await anext(events)


async def _joined(first: str, events: AsyncGenerator[str, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first.encode()
        async for event in events:
            yield event.encode()
    finally:
        await events.aclose()
