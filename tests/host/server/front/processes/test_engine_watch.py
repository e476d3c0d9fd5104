from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tartlet.server.engine.engine_server import EngineServer
from tartlet.server.engine.probe import EngineProbe
from tartlet.server.front.processes import engine_watch
from tartlet.server.front.processes.engine_watch import EngineWatch
from tartlet.testing import FakeEngine


@pytest.fixture
def engine(short_folder: Path) -> Iterator[FakeEngine]:
    """An engine in this process, served at `engine` in the folder."""
    engine = FakeEngine()
    server = EngineServer(engine, short_folder / "engine", {"fake": None}, lambda error: None)
    yield engine
    server.close()
    engine.close()


@contextmanager
def standing_still(engine: FakeEngine) -> Iterator[None]:
    """Keep the engine's own thread from going on."""
    begun, may_go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with engine._lock:
            begun.set()
            may_go_on.wait()

    holding = threading.Thread(target=hold)
    holding.start()
    begun.wait()
    try:
        yield
    finally:
        may_go_on.set()
        holding.join()


async def test_progress_is_an_answer_of_the_engine_s_thread(
    engine: FakeEngine, short_folder: Path, settled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it stands still there is none, though its process answers; it ends as stuck in the end."""
    monkeypatch.setattr(engine_watch, "_BEAT_S", 0.01)
    monkeypatch.setattr(engine_watch, "_STATS_PATIENCE_S", 0.01)
    probe = await EngineProbe.connect(short_folder / "engine")
    watch = EngineWatch(probe)
    watching = asyncio.create_task(watch.watch())
    assert watch.makes_progress
    known = None
    while known is None:
        known = await watch.stats()
    with standing_still(engine):
        await settled(lambda: not watch.makes_progress)
        assert await watch.stats() == known
    await settled(lambda: watch.makes_progress)
    assert not watching.done()

    monkeypatch.setattr(engine_watch, "_STUCK_BEATS", 20)
    with standing_still(engine):
        await asyncio.wait_for(watching, 60)
    assert watch.is_stuck
    await probe.close()


async def test_an_engine_that_is_gone_ends_it(engine: FakeEngine, short_folder: Path) -> None:
    """At once."""
    probe = await EngineProbe.connect(short_folder / "engine")
    watch = EngineWatch(probe)
    watching = asyncio.create_task(watch.watch())
    await asyncio.sleep(0)
    await probe.close()
    await asyncio.wait_for(watching, 60)

    assert not watch.is_stuck
    assert await watch.stats() is None
