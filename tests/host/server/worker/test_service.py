from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tartlet.errors import EngineStoppedError, ProgramError, RunCancelledError
from tartlet.events import Output, RunUsage
from tartlet.server.front.processes.remote_run import RemoteRun
from tartlet.server.requests import ProgramRef, RunRequest
from tartlet.server.worker import service

pytestmark = pytest.mark.runner

GENERATE = """
from tartlet_sdk import Model, inferlet

@inferlet
async def main(n: int) -> int:
    print("begun")
    context = Model.default().context()
    context.fill("x" * 3000)
    return len((await context.generate(max_tokens=n)).tokens)
"""
LONG, SHORT = 3000, 3
"""Tokens; a step takes a millisecond."""


async def test_without_an_engine_nothing_runs(link: Any, store_source: Any) -> None:
    """What is asked for ends with the reason."""
    with pytest.raises(EngineStoppedError):
        await link.start(_request(store_source(GENERATE), LONG)).result_json()


async def test_runs_end_with_their_engine_and_the_next_serves(link: Any, store_source: Any) -> None:
    """Each engine has a host of its own."""
    engine = await link.attach(1)
    run = link.start(_request(store_source(GENERATE), LONG))
    await _begun(run)
    engine.crash("it fell")
    with pytest.raises(EngineStoppedError, match="it fell"):
        await run.result_json()

    await link.attach(2)
    assert json.loads(await link.start(_request(store_source(GENERATE), SHORT)).result_json()) == SHORT


async def test_an_engine_that_cannot_be_reached_is_tried_again(link: Any, store_source: Any) -> None:
    """Until there is another."""
    link.use_engine(1, Path("nowhere"))
    await link.attach(2)

    assert json.loads(await link.start(_request(store_source(GENERATE), SHORT)).result_json()) == SHORT


async def test_a_way_to_the_engine_that_is_lost_is_made_again(
    link: Any, store_source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is there: others use it. Meanwhile the worker has none; then it runs programs as before."""
    monkeypatch.setattr(service, "_RETRY_S", 0.0)
    await link.attach(1)
    run = link.start(_request(store_source(GENERATE), LONG))
    await _begun(run)
    link.lost["1"].set()
    async with asyncio.timeout(60):
        for engine in (None, 1):
            while link.engine != engine:
                await asyncio.sleep(0)

    with pytest.raises(RunCancelledError):
        await run.result_json()
    assert json.loads(await link.start(_request(store_source(GENERATE), SHORT)).result_json()) == SHORT


async def test_a_start_under_way_can_be_cancelled(link: Any, store_source: Any) -> None:
    """While its program is being loaded."""
    engine = await link.attach(1)
    run = link.start(_request(store_source(GENERATE), LONG))
    await asyncio.sleep(0)
    run.cancel()

    assert await run.next_event() == RunUsage()
    with pytest.raises(RunCancelledError):
        await run.result_json()
    engine.check_integrity()  # which carries out what it has been told
    assert link.num_runs == engine.stats().runs == 0


async def test_a_run_can_be_cancelled(link: Any, store_source: Any) -> None:
    """And what has been heard of it stays: it was told while it went on."""
    engine = await link.attach(1)
    run = link.start(_request(store_source(GENERATE), LONG))
    await _begun(run)
    async with asyncio.timeout(60):
        while run.usage == RunUsage():
            await asyncio.sleep(0.01)
    run.cancel()
    with pytest.raises(RunCancelledError):
        await run.result_json()

    assert isinstance(await run.next_event(), RunUsage)
    engine.check_integrity()
    assert engine.stats().runs == 0


async def test_what_is_wrong_is_the_run_s(link: Any, store_source: Any) -> None:
    """A program that is not there, and limits that are none."""
    await link.attach(1)
    ref = store_source(GENERATE)
    missing = ProgramRef("0" * 64, ref.path + "-not", "source", "acme/program")
    with pytest.raises(ProgramError, match="cannot be read"):
        await link.start(_request(missing, SHORT)).result_json()


async def _begun(run: RemoteRun) -> None:
    assert await run.next_event() == Output("begun\n")


def _request(program: ProgramRef, num_tokens: int) -> RunRequest:
    return RunRequest(f"run_{num_tokens}", "acme", program, json.dumps({"n": num_tokens}), {})
