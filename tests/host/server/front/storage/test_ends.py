from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tartlet.events import RunUsage
from tartlet.server.front.storage import Storage, database, ends, open_storage

from .conftest import Clock

USAGE = RunUsage(generated_tokens=7)


class Lock:
    """Keeps a database from being written to."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)

    def take(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def release(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
async def lock(tmp_path: Path) -> AsyncIterator[Lock]:
    async with open_storage(str(tmp_path / "db")):
        made = Lock(tmp_path / "db")
    yield made
    made.close()


@pytest.fixture
async def storage(lock: Lock, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Storage]:
    """Two runs go on. The database is not waited for."""
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.01)
    monkeypatch.setattr(ends, "MOST_UNWRITTEN", 2)
    async with open_storage(str(tmp_path / "db"), clock=clock) as opened:
        opened.ends = ends.Ends(opened.runs, retry_s=0.01)
        for run_id in ("run-1", "run-2", "run-3"):
            await opened.runs.start(run_id, "default", "d" * 64, "hello")
        yield opened


async def test_an_end_is_written_at_once_if_it_can_be(storage: Storage) -> None:
    """Nothing is kept then."""
    assert await storage.ends.write("run-1", "succeeded", usage=USAGE, result_json="5")
    assert (await storage.runs.get("default", "run-1")).result_json == "5"
    assert storage.ends.num_unwritten == 0
    await storage.ends.close()


async def test_an_end_is_kept_until_it_can_be_written(storage: Storage, lock: Lock, clock: Clock) -> None:
    """With the time at which the run ended; the ledger counts it once."""
    ended_ms = int(clock.seconds * 1000)
    lock.take()
    assert not await storage.ends.write("run-1", "succeeded", usage=USAGE, result_json="5")
    assert not await storage.ends.write("run-2", "failed", usage=USAGE)
    clock.seconds += 100
    assert storage.ends.num_unwritten == 2
    assert (await storage.runs.get("default", "run-1")).state == "running"
    lock.release()
    while storage.ends.num_unwritten:
        await asyncio.sleep(0.01)
    run = await storage.runs.get("default", "run-1")

    assert (run.state, run.result_json, run.ended_ms) == ("succeeded", "5", ended_ms)
    assert [(day.runs, day.failures, day.generated_tokens) for day in await storage.usage.read()] == [(2, 1, 14)]
    await storage.ends.close()


async def test_only_so_many_are_kept(storage: Storage, lock: Lock, caplog: pytest.LogCaptureFixture) -> None:
    """One more is lost, and the log says so."""
    lock.take()
    for run_id in ("run-1", "run-2", "run-3"):
        await storage.ends.write(run_id, "succeeded", usage=USAGE)
    lock.release()
    await storage.ends.close()

    assert storage.ends.num_unwritten == 0
    assert "the end of the run run-3 is lost" in caplog.text
    assert (await storage.runs.get("default", "run-2")).state == "succeeded"
    assert (await storage.runs.get("default", "run-3")).state == "running"


async def test_what_is_unwritten_at_the_end_is_said(
    storage: Storage, lock: Lock, caplog: pytest.LogCaptureFixture
) -> None:
    """After one more try."""
    lock.take()
    await storage.ends.write("run-1", "succeeded", usage=USAGE)
    await storage.ends.close()
    lock.release()

    assert storage.ends.num_unwritten == 1
    assert "the end of the run run-1 is lost: the database cannot be used" in caplog.text
