"""Real processes on an engine without a model, and a program that keeps them busy."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tartlet.events import Output
from tartlet.server.front.processes.pool import WorkerPool
from tartlet.server.front.processes.remote_run import RemoteRun
from tartlet.server.requests import ProgramRef, RunRequest

STORY = """
from tartlet_sdk import Model, inferlet

@inferlet
async def main(n: int, text: str) -> str:
    print("begun")
    context = Model.default().context()
    context.fill(text)
    return (await context.generate(max_tokens=n)).text
"""

Settled = Callable[[Callable[[], Any]], Awaitable[None]]
Begin = Callable[..., Awaitable[RemoteRun]]


@pytest.fixture
def settled() -> Settled:
    """Waits until a condition holds; for what other processes do in their own time."""

    async def wait(condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(120):
            while True:
                held = condition()
                if await held if asyncio.iscoroutine(held) else held:
                    return
                await asyncio.sleep(0.01)

    return wait


@pytest.fixture
def story(store_source: Callable[[str], ProgramRef]) -> ProgramRef:
    """An inferlet that says that it has begun, and generates n tokens: the engine gives its text back, byte by byte."""
    return store_source(STORY)


@pytest.fixture
def begin(story: ProgramRef) -> Begin:
    """Starts a run of the story, and waits until it is under way."""
    numbers = itertools.count(1)

    async def start(pool: WorkerPool, num_tokens: int, text: str = "Once upon a time. " * 100) -> RemoteRun:
        request_input = json.dumps({"n": num_tokens, "text": text})
        run = await pool.start(RunRequest(f"run_{next(numbers)}", "acme", story, request_input, {}))
        assert await run.next_event() == Output("begun\n")
        return run

    return start
