"""A run's session: a WebSocket, over which its events come and it can be cancelled."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, WebSocket
from starlette.websockets import WebSocketDisconnect

from tartlet.errors import TartletError
from tartlet.server.front.auth import CallerParam, needs
from tartlet.server.front.errors import ApiError, error_fields, error_response
from tartlet.server.front.following import messages_of
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.services import ServicesParam
from tartlet.server.front.sse import SEND_TIMEOUT_S
from tartlet.server.raw_json import to_json

MAX_TEXT_LEN = 64 * 1024  # characters of what a client sends

router = APIRouter(prefix="/v1", tags=["runs"])


class Sent(msgspec.Struct):
    """What a client sends."""

    type: Literal["cancel", "message"]
    """`message` is for the program, which cannot hear it yet."""


@router.websocket("/runs/{run_id}/session")
@needs("runs:start")
async def session(
    websocket: WebSocket,
    run_id: str,
    caller: CallerParam,
    services: ServicesParam,
    after: Annotated[int | None, Query(ge=0)] = None,
) -> None:
    """Send the run's events as JSON texts, the last of them `finished`; take `{"type": "cancel"}`."""
    try:
        run = services.runs.find(caller.tenant, run_id[:100])
    except TartletError as error:
        await websocket.send_denial_response(error_response(error))
        return
    await websocket.accept()
    with run.held():
        await _converse(websocket, run, after)


async def _converse(websocket: WebSocket, run: LiveRun, after: int | None) -> None:
    sending = asyncio.create_task(_send_all(websocket, run, after))
    taking = asyncio.create_task(_take_all(websocket, run))
    try:
        await asyncio.wait({sending, taking}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, taking):
            task.cancel()
        done = await asyncio.gather(sending, taking, return_exceptions=True)
    for outcome in done:
        if isinstance(outcome, Exception) and not isinstance(outcome, WebSocketDisconnect | TimeoutError | OSError):
            raise outcome


async def _send_all(websocket: WebSocket, run: LiveRun, after: int | None) -> None:
    messages = messages_of(run, after)
    try:
        async for message in messages:
            await _send(websocket, message)
        await websocket.close()
    finally:
        await messages.aclose()


async def _take_all(websocket: WebSocket, run: LiveRun) -> None:
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        try:
            if _parsed(message.get("text")).type == "message":
                raise ApiError(501, "unsupported", "the program cannot hear messages from its client yet")
            run.cancel()
        except ApiError as error:
            await _send(websocket, {"type": "error", "error": error_fields(error)})


def _parsed(text: str | None) -> Sent:
    if text is None or len(text) > MAX_TEXT_LEN:
        raise ApiError(400, "invalid_request", f"a text of at most {MAX_TEXT_LEN:,} characters is expected")
    try:
        return msgspec.json.decode(text, type=Sent)
    except (msgspec.DecodeError, RecursionError):
        hint = 'For example: {"type": "cancel"}'
        raise ApiError(400, "invalid_request", "the message is not understood", hint=hint) from None


async def _send(websocket: WebSocket, message: dict[str, Any]) -> None:
    async with asyncio.timeout(SEND_TIMEOUT_S):
        await websocket.send_text(to_json(message))
