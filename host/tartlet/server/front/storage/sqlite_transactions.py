"""Transactions on SQLite, in threads: one that writes, in order of arrival, and some that read.

Each commit waits for the disk. So what arrives while a commit is going on is committed together, each piece of work
under a savepoint of its own: a hundred runs that end at once wait for the disk a few times, not a hundred. What need
not survive a power cut does not wait for the disk at all; it gets there with the next commit that does.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError

from tartlet import locks
from tartlet.errors import ConfigError

NUM_READERS = 4
MOST_TOGETHER = 64
"""Pieces of work that are committed together."""
FAULTS_OF_STATEMENTS = (IntegrityError, ProgrammingError, DataError)
"""Errors that say nothing of the database itself."""

# SQLite's lock is taken at the beginning: nobody has to give up half way.
_BEGIN_DURABLE = ("PRAGMA synchronous = FULL", "BEGIN IMMEDIATE")
_BEGIN_LAZY = ("PRAGMA synchronous = NORMAL", "BEGIN IMMEDIATE")

T = TypeVar("T")
Work: TypeAlias = Callable[[Connection], T]
Outcome: TypeAlias = tuple[Any, Exception | None]
"""What work has returned, or raised."""


class SqliteTransactions:
    """SQLite. Implements `Transactions`; its methods are called on one event loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writer = ThreadPoolExecutor(1, "tartlet-db-writer")
        self._readers = ThreadPoolExecutor(NUM_READERS, "tartlet-db-reader")
        self._waiting: deque[tuple[Work[Any], bool, asyncio.Future[Any]]] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._holding: int | None = None  # a descriptor
        self._peeking: sqlite3.Connection | None = None  # of `number`

    async def read(self, work: Work[T]) -> T:
        """See `Transactions`."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._do, ("BEGIN",), work)

    async def write(self, work: Work[T], *, is_lazy: bool) -> T:
        """See `Transactions`."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, is_lazy, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        return await done

    async def number(self, query: str, values: Mapping[str, str]) -> int | None:
        """See `Transactions`. It is read on the event loop: a reader of a WAL waits for nobody."""
        try:
            if self._peeking is None:
                self._peeking = sqlite3.connect(str(self._engine.url.database), timeout=0, isolation_level=None)
            found = self._peeking.execute(query, values).fetchone()
        except sqlite3.Error:  # such as a log that has to be recovered first: then a thread waits for that
            return await self.read(lambda connection: connection.scalar(text(query), values))
        return None if found is None else int(found[0])

    async def hold(self) -> bool:
        """See `Transactions`. It is a lock on a file of its own, beside the database."""
        self._holding = locks.hold_if_free(Path(f"{self._engine.url.database}.front"))
        return self._holding is not None

    async def close(self) -> None:
        """See `Transactions`."""
        if self._holding is not None:
            os.close(self._holding)
        if self._peeking is not None:
            self._peeking.close()
        for threads in (self._writer, self._readers):
            await asyncio.to_thread(threads.shutdown)
        self._engine.dispose()

    async def _write_all(self) -> None:
        """Write what waits, and what comes meanwhile."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_TOGETHER))]
            works, is_lazy = [work for work, _, _ in batch], all(is_lazy for _, is_lazy, _ in batch)
            outcomes = await loop.run_in_executor(self._writer, self._do_batch, works, is_lazy)
            for (_, _, done), (result, error) in zip(batch, outcomes, strict=True):
                if done.cancelled():
                    continue
                if error is None:
                    done.set_result(result)
                else:
                    done.set_exception(error)
        self._writing = None

    def _do_batch(self, works: Sequence[Work[Any]], is_lazy: bool) -> list[Outcome]:
        begin = _BEGIN_LAZY if is_lazy else _BEGIN_DURABLE
        if len(works) > 1:
            try:
                return self._do_together(begin, works)
            except Exception:
                pass  # nothing of it has been done; one of them may be too large for the disk, and others not
        return [self._outcome(begin, work) for work in works]

    def _do_together(self, begin: Sequence[str], works: Sequence[Work[Any]]) -> list[Outcome]:
        """All in one transaction. If this raises, all of it is undone."""
        outcomes: list[Outcome] = []
        with self._engine.connect() as connection:
            try:
                _run(connection, begin)
            except DBAPIError as error:  # locked: each for itself would wait as long again
                return [(None, error)] * len(works)
            for work in works:
                connection.exec_driver_sql("SAVEPOINT work")
                try:
                    outcomes.append((work(connection), None))
                except Exception as error:
                    if isinstance(error, DBAPIError) and not isinstance(error, FAULTS_OF_STATEMENTS):
                        raise  # SQLite may have undone all of it already
                    connection.exec_driver_sql("ROLLBACK TO work")
                    outcomes.append((None, error))
                connection.exec_driver_sql("RELEASE work")
            connection.commit()
        return outcomes

    def _outcome(self, begin: Sequence[str], work: Work[Any]) -> Outcome:
        try:
            return self._do(begin, work), None
        except Exception as error:
            return None, error

    def _do(self, begin: Sequence[str], work: Work[T]) -> T:
        with self._engine.connect() as connection:
            _run(connection, begin)
            result = work(connection)
            connection.commit()
            return result


def _run(connection: Connection, statements: Sequence[str]) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)


def open_sqlite(url: URL, busy_timeout_s: float) -> SqliteTransactions:
    """Open a file, which is made if it is not there.

    Args:
        url: With the file.
        busy_timeout_s: How long to wait for other processes.

    Raises:
        ConfigError: The file cannot be made.
    """
    _make_file(Path(url.database or ""))
    size = {"pool_size": NUM_READERS + 1, "max_overflow": 0}
    engine = create_engine(url, connect_args={"timeout": busy_timeout_s}, **size)
    event.listen(engine, "connect", _set_up)
    return SqliteTransactions(engine)


def _make_file(path: Path) -> None:
    """Make the file, readable by its owner only: SQLite gives the files beside it the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise ConfigError(
            f"the database {path} cannot be opened: {error.strerror}", hint="Name a file in a folder of your own."
        ) from error


def _set_up(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver begins no transactions by itself
    cursor = connection.cursor()
    for pragma in ("journal_mode = WAL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
