from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from tartlet.errors import EngineStoppedError
from tartlet.server.engine.engine_server import EngineServer
from tartlet.server.requests import RunRequest
from tartlet.server.worker.connection import Connection
from tartlet.server.worker.messages import MOST_BYTES, Attached, Ended, Start, ToFront, UseEngine
from tartlet.server.worker.worker import open_on_engine, work
from tartlet.testing import FakeEngine

pytestmark = pytest.mark.runner


async def test_a_worker_s_life(short_folder: Path, store_source: Any) -> None:
    """From its connection to the front until that is closed; the engine keeps nothing of it."""
    engine = FakeEngine()
    server = EngineServer(engine, short_folder / "engine", {"fake": None}, lambda error: None)
    ours, theirs = socket.socketpair()
    working = asyncio.create_task(work(theirs.detach(), num_spares=0))
    connection = await Connection.open(ours, ToFront, MOST_BYTES)
    heard: list[Any] = []
    serving = asyncio.create_task(connection.serve(heard.append))
    source = store_source("from tartlet_sdk import inferlet\n@inferlet\ndef main(): return 3\n")

    connection.send(UseEngine(1, str(short_folder / "engine")))
    async with asyncio.timeout(60):
        while Attached(1) not in heard:
            await asyncio.sleep(0.01)
        connection.send(Start(7, RunRequest("run_1", "acme", source, "null", {}), b""))
        while not (ended := [message for message in heard if isinstance(message, Ended)]):
            await asyncio.sleep(0.01)
        assert json.loads(ended[0].outcome) == 3
        connection.close()
        await asyncio.gather(working, serving)

    server.close()
    engine.check_integrity()
    engine.close()


async def test_spares_are_there_before_the_first_run(short_folder: Path) -> None:
    """So that it need not wait for the runner."""
    engine = FakeEngine()
    server = EngineServer(engine, short_folder / "engine", {"fake": None}, lambda error: None)
    async with open_on_engine(str(short_folder / "engine"), 1) as sandboxes, asyncio.timeout(60):
        while not sandboxes._host.stats().runs.spares_parked:
            await asyncio.sleep(0.01)
    server.close()
    engine.close()


async def test_it_hears_that_the_way_to_the_engine_is_lost(short_folder: Path) -> None:
    """As when the engine's process hangs up on a worker that does not read."""
    engine = FakeEngine()
    server = EngineServer(engine, short_folder / "engine", {"fake": None}, lambda error: None)
    async with open_on_engine(str(short_folder / "engine"), 0) as sandboxes, asyncio.timeout(60):
        was_lost = sandboxes.engine_lost.is_set()
        for session in server._sessions.values():
            session.hang_up()
        await sandboxes.engine_lost.wait()
    assert not was_lost
    server.close()
    engine.close()


async def test_there_may_be_no_engine(short_folder: Path) -> None:
    """Then there is nothing to run programs on."""
    with pytest.raises(EngineStoppedError):
        async with open_on_engine(str(short_folder / "engine"), 0):
            pytest.fail("it was opened")
