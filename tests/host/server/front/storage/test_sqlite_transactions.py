from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import IntegrityError, OperationalError

from tartlet.server.front.storage.sqlite_transactions import SqliteTransactions, open_sqlite

from .conftest import outcomes


class Counted(SqliteTransactions):
    """Counts transactions that write."""

    num_transactions = 0

    def _do_batch(self, works, is_lazy):  # type: ignore[no-untyped-def]
        self.num_transactions += 1
        return super()._do_batch(works, is_lazy)


@pytest.fixture
async def transactions(tmp_path: Path) -> AsyncIterator[Counted]:
    """A database with a table of unique numbers."""
    opened = open_sqlite(make_url(f"sqlite+pysqlite:///{tmp_path / 'db'}"), 0.05)
    opened.__class__ = Counted
    assert isinstance(opened, Counted)
    create = text("CREATE TABLE t (x INTEGER UNIQUE, y TEXT)")
    await opened.write(lambda connection: connection.execute(create), is_lazy=False)
    yield opened
    await opened.close()


async def add(transactions: SqliteTransactions, number: int, *, fails: bool = False, length: int = 0) -> int:
    def work(connection: Connection) -> int:
        connection.execute(text("INSERT INTO t VALUES (:x, :y)"), {"x": number, "y": "y" * length})
        if fails:
            raise ValueError(number)
        return number

    return await transactions.write(work, is_lazy=False)


async def numbers(transactions: SqliteTransactions) -> list[int]:
    return await transactions.read(lambda c: [*c.scalars(text("SELECT x FROM t ORDER BY x"))])


async def test_what_comes_at_once_is_committed_together(transactions: Counted) -> None:
    """Each for itself, though: one that fails is undone, and the others are not."""
    before = transactions.num_transactions
    tries = [add(transactions, number, fails=number % 3 == 0) for number in range(40)]
    tries += [add(transactions, 1), add(transactions, 2)]
    heard = await outcomes(*tries)

    assert transactions.num_transactions - before <= 2
    assert await numbers(transactions) == [number for number in range(40) if number % 3]
    assert [each for each in heard[:40] if isinstance(each, int)] == await numbers(transactions)
    assert all(isinstance(each, ValueError) for each in heard[:40:3])
    assert [type(each) for each in heard[40:]] == [IntegrityError] * 2


async def test_one_that_does_not_fit_on_the_disk_does_not_stop_others(transactions: Counted) -> None:
    """Though SQLite undoes everything that was to be committed with it."""

    def limit_pages(connection: Connection) -> None:
        pages = connection.scalar(text("PRAGMA page_count"))
        connection.execute(text(f"PRAGMA max_page_count = {pages + 20}"))

    await transactions.write(limit_pages, is_lazy=False)
    tries = [add(transactions, number, length=1_000_000 if number == 5 else 0) for number in range(10)]
    heard = await outcomes(*tries)

    assert isinstance(heard[5], OperationalError)
    assert await numbers(transactions) == [0, 1, 2, 3, 4, 6, 7, 8, 9]


async def test_all_fail_of_a_locked_database(transactions: Counted, tmp_path: Path) -> None:
    """And those that come when the lock is gone do not."""
    other = sqlite3.connect(tmp_path / "db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    heard = await outcomes(*(add(transactions, number) for number in range(5)))
    other.close()

    assert [type(each) for each in heard] == [OperationalError] * 5
    assert await add(transactions, 7) == 7


async def test_a_caller_that_gives_up_stops_nobody(transactions: Counted) -> None:
    """Whether its work was done or not."""
    tasks = [asyncio.create_task(add(transactions, number)) for number in range(10)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    heard = await outcomes(*tasks)

    assert isinstance(heard[3], asyncio.CancelledError)
    assert [number for number in await numbers(transactions) if number != 3] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


async def test_only_what_is_lazy_does_not_wait_for_the_disk(transactions: Counted) -> None:
    """And not if it is committed with something that is not."""

    def synchronous(connection: Connection) -> int:
        level: int = connection.scalar(text("PRAGMA synchronous"))
        return level

    normal, full = 1, 2
    assert await transactions.write(synchronous, is_lazy=True) == normal
    assert await transactions.write(synchronous, is_lazy=False) == full
    assert await outcomes(*(transactions.write(synchronous, is_lazy=True) for _ in range(3))) == [normal] * 3
    mixed = await outcomes(*(transactions.write(synchronous, is_lazy=number != 2) for number in range(3)))
    assert mixed == [full] * 3
