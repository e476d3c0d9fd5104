from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.requests import Request

from tartlet.server.front.errors import ApiError
from tartlet.server.front.following import messages_of, unless_gone, wait_for
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.run_events import Outcome


def request_of(gone: asyncio.Event) -> Request:
    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http", "headers": []}, receive)


async def test_work_for_a_client_that_stays() -> None:
    """What it gives and what it raises come out."""
    request = request_of(asyncio.Event())

    async def fail() -> None:
        raise ZeroDivisionError

    assert await unless_gone(request, asyncio.sleep(0, 5)) == 5
    with pytest.raises(ZeroDivisionError):
        await unless_gone(request, fail())


async def test_work_for_a_client_that_goes() -> None:
    """It is cancelled, and has come to its end when that is told."""
    gone, was_cancelled = asyncio.Event(), False

    async def work() -> None:
        nonlocal was_cancelled
        gone.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled = True

    with pytest.raises(ApiError) as error:
        await unless_gone(request_of(gone), work())
    assert error.value.status == 499
    assert was_cancelled


async def test_waiting_for_a_run() -> None:
    """Who goes lets go of it; who hears its end does not cancel it."""
    run, gone = LiveRun("acme", "p", "d"), asyncio.Event()
    gone.set()
    with pytest.raises(ApiError):
        await wait_for(run, request_of(gone))
    assert run._reason is not None
    other = LiveRun("acme", "p", "d")
    other.finish(Outcome("succeeded", "1"))
    await wait_for(other, request_of(asyncio.Event()))


async def test_what_is_told_of_a_run() -> None:
    """Its start, unless that was heard already, and its end."""
    run = LiveRun("acme", "p", "d")
    run.finish(Outcome("succeeded", "1"))

    assert [message["type"] async for message in messages_of(run)] == ["started", "finished"]
    assert [message["type"] async for message in messages_of(run, 0)] == ["finished"]
