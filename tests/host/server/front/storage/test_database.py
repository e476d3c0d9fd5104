from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from tartlet.errors import UnavailableError
from tartlet.events import RunUsage
from tartlet.server.front.storage import Storage, database, open_storage

from .conftest import OpenStorage, outcomes

DIGEST = "d" * 64
USAGE = RunUsage(generated_tokens=1)

# Starts and ends runs, as a front does, and tells of each when it has ended.
FRONT = """
import asyncio, sys
from tartlet.events import RunUsage
from tartlet.server.front.storage import open_storage

async def main(url, name, count):
    async with open_storage(url) as storage:
        for number in range(count):
            await storage.runs.start(f"{name}-{number}", "default", "d" * 64, "hello")
            await storage.runs.end(f"{name}-{number}", "succeeded", usage=RunUsage(generated_tokens=1))
            print(f"{name}-{number}", flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def start_front(url: str, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", FRONT, url, name, str(count)], stdout=subprocess.PIPE, text=True)


def test_what_a_client_has_heard_of_survives_a_kill(url: str) -> None:
    """The front is killed at once when it has told of a run's end: the end is there, and so is what the run used."""
    for number in range(3):
        front = start_front(url, f"life-{number}", 1_000_000)
        assert front.stdout is not None
        told = [front.stdout.readline().strip() for _ in range(5 + number)]
        os.kill(front.pid, signal.SIGKILL)
        told += front.stdout.read().split()
        front.wait()
        front.stdout.close()
        asyncio.run(check_life(url, told))


async def check_life(url: str, told: list[str]) -> None:
    async with open_storage(url) as storage:
        for run_id in told:
            assert (await storage.runs.get("default", run_id)).state == "succeeded"
        await storage.runs.end_all_lost()
        runs = await storage.runs.list("default", limit=10_000)
        [day] = await storage.usage.read("default")
        assert day.runs == len(runs)
        assert day.generated_tokens == sum(run.state == "succeeded" for run in runs)
        assert not any(run.state == "running" for run in runs)


async def test_two_processes_write_at_once(url: str, storage: Storage) -> None:
    """Neither loses anything, and no request fails."""
    front = start_front(url, "other", 40)
    for number in range(40):
        await storage.runs.start(f"own-{number}", "default", DIGEST, "hello")
        await storage.runs.end(f"own-{number}", "succeeded", usage=USAGE)
    output, _ = await asyncio.to_thread(front.communicate)

    assert front.returncode == 0
    assert len(output.split()) == 40
    assert sum([day.generated_tokens for day in await storage.usage.read("default", days=100)]) == 80


async def test_a_locked_database_fails_that_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After the time that is waited. Reading goes on; and so does writing when the lock is gone."""
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    async with open_storage(str(tmp_path / "db")) as storage:
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError, match="locked") as caught:
            await storage.tenants.create("acme")
        assert (await storage.tenants.get("default")).weight == 1.0
        other.execute("ROLLBACK")
        other.close()
        await storage.tenants.create("acme")

    assert caught.value.code == "storage_unavailable"
    assert "database is locked" in caplog.text


async def test_a_key_is_accepted_though_its_use_cannot_be_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is no reason to refuse whoever has it."""
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    async with open_storage(str(tmp_path / "db")) as storage:
        key = await storage.keys.create("default")
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert await storage.keys.authenticate(key.token) is not None
        other.close()


async def test_a_full_disk_fails_that_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of it is done, what is there can be read, and writing goes on when there is space again."""
    opened = database.Database(str(tmp_path / "db"))
    await opened.write(lambda connection: connection.execute(text("CREATE TABLE t (x TEXT)")))
    pages = await opened.read(lambda connection: connection.scalar(text("PRAGMA page_count")))

    async def fill(most_pages: int) -> None:
        def work(connection: Connection) -> None:
            connection.execute(text(f"PRAGMA max_page_count = {most_pages}"))
            for _ in range(50):
                connection.execute(text("INSERT INTO t VALUES (:x)"), {"x": "x" * 4000})

        await opened.write(work)

    async def count() -> object:
        return await opened.read(lambda connection: connection.scalar(text("SELECT count(*) FROM t")))

    for _ in range(3):
        with pytest.raises(UnavailableError, match="no space left"):
            await fill(pages + 10)
    assert await count() == 0
    await fill(pages + 1000)
    assert await count() == 50
    await opened.close()
    assert "database or disk is full" in caplog.text


async def test_a_server_that_is_gone_fails_that_request(url: str, storage: Storage, open_again: OpenStorage) -> None:
    """And no other: connections that were cut are made again."""
    if url.startswith("sqlite"):
        pytest.skip("there is no server")
    import asyncpg

    await outcomes(*(storage.tenants.list() for _ in range(8)))
    other = await asyncpg.connect(url)
    others = "pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    await other.execute(f"SELECT pg_terminate_backend(pid) FROM {others}")
    await other.close()
    for _ in range(8):
        assert [tenant.name for tenant in await storage.tenants.list()] == ["acme", "default"]


async def test_callers_may_give_up_at_any_time(storage: Storage) -> None:
    """A write that has begun is done or not done; no connection is lost, and what comes later works."""
    randomness = random.Random(0)

    async def one_run(number: int) -> None:
        await storage.runs.start(f"run-{number}", "acme", DIGEST, "hello")
        await storage.runs.end(f"run-{number}", "succeeded", usage=USAGE)
        await storage.runs.list("acme", limit=10)

    tasks = [asyncio.create_task(one_run(number)) for number in range(60)]
    while not all(task.done() for task in tasks):
        await storage.tenants.list()
        randomness.choice(tasks).cancel()
    await outcomes(*tasks)
    await storage.runs.end_all_lost()
    runs = await storage.runs.list("acme", limit=1000)
    [day] = await storage.usage.read("acme") or [None]

    assert day is not None
    assert day.runs == len(runs)
    assert day.generated_tokens == sum(run.state == "succeeded" for run in runs)
    await outcomes(*(storage.tenants.get("acme") for _ in range(30)))
    gc.collect()


async def test_closing_waits_for_writes(url: str) -> None:
    """Whose callers are gone."""
    async with open_storage(url) as storage:
        caller = asyncio.create_task(storage.tenants.create("acme"))
        await asyncio.sleep(0)
        caller.cancel()
        await outcomes(caller)
    async with open_storage(url) as storage:
        assert (await storage.tenants.get("acme")).name == "acme"


async def test_only_what_is_lazy_does_not_wait_for_the_disk_of_postgresql(url: str) -> None:
    """Of SQLite, the tests of its transactions tell."""
    if url.startswith("sqlite"):
        pytest.skip("there is no server")
    opened = database.Database(url)
    levels = [
        await opened.write(lambda connection: connection.scalar(text("SHOW synchronous_commit")), is_lazy=is_lazy)
        for is_lazy in (True, False)
    ]
    await opened.close()

    assert levels == ["off", "on"]
