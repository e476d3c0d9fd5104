"""The database: connections, transactions, and what its failures become. Knows no table.

On SQLite, writes of this process take turns in order of arrival (a lock here), and those of other processes are waited
for (the busy timeout). A transaction that writes takes SQLite's lock at its beginning: none has to give up half way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import URL, Table, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from tartlet.errors import ConfigError, UnavailableError

BUSY_TIMEOUT_S = 5.0
"""How long a write waits for other processes; and any request for a connection of the pool."""
POOL_SIZE = 8

Clock: TypeAlias = Callable[[], float]
"""Seconds since 1970, as `time.time`."""
T = TypeVar("T")

_log = logging.getLogger("tartlet.server.storage")
_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg", "postgres": "postgresql+asyncpg"}
_OURS = (IntegrityError, ProgrammingError, DataError)  # faults of a statement, not of the database


class Database:
    """Transactions on an open engine. All methods are called on one event loop."""

    def __init__(self, engine: AsyncEngine, clock: Clock = time.time) -> None:
        self._engine = engine
        self._clock = clock
        self.is_sqlite = engine.dialect.name == "sqlite"
        self._turns = asyncio.Lock()
        self._writes: set[asyncio.Task[Any]] = set()

    def now_ms(self) -> int:
        """The time."""
        return int(self._clock() * 1000)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that sees one state of the database. Raises UnavailableError."""
        with _as_unavailable():
            async with self._engine.connect() as connection:
                yield connection

    async def write(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Do work in a transaction, which is on disk when this returns; whatever `work` raises undoes it.

        If the caller is cancelled, the transaction still comes to its end, one way or the other.

        Raises: UnavailableError; and what `work` raises.
        """
        task = asyncio.create_task(self._write(work))
        self._writes.add(task)
        task.add_done_callback(self._written)
        return await asyncio.shield(task)

    def insert(self, table: Table) -> Any:
        """An `INSERT` that knows `on_conflict_do_nothing` and `on_conflict_do_update`, which both databases have."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    async def close(self) -> None:
        """Wait for writes that have begun, and close all connections."""
        while self._writes:
            await asyncio.wait(self._writes)
        await self._engine.dispose()

    async def _write(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        with _as_unavailable():
            if not self.is_sqlite:
                async with self._engine.begin() as connection:
                    return await work(connection)
            async with self._turns, self._engine.execution_options(writes=True).begin() as connection:
                return await work(connection)

    def _written(self, task: asyncio.Task[Any]) -> None:
        self._writes.discard(task)
        if not task.cancelled():
            task.exception()  # it has been told to the caller, unless that has been cancelled


def open_engine(url: str) -> AsyncEngine:
    """Make an engine, which connects when it is used first.

    Args:
        url: `sqlite:///FILE`, a path to such a file, or `postgresql://USER:PASSWORD@HOST/NAME`.

    Raises:
        ConfigError: It is none of these, its driver is missing, or the file cannot be made.
    """
    parsed = _parsed(url)
    try:
        if parsed.get_backend_name() == "postgresql":
            return create_async_engine(parsed, pool_size=POOL_SIZE, pool_timeout=BUSY_TIMEOUT_S, pool_pre_ping=True)
        _make_file(Path(parsed.database or ""))
        engine = create_async_engine(
            parsed, pool_size=POOL_SIZE, pool_timeout=BUSY_TIMEOUT_S, connect_args={"timeout": BUSY_TIMEOUT_S}
        )
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the driver of {parsed.drivername} is not installed: {error.name}",
            hint="For PostgreSQL: pip install 'tartlet[postgres]'.",
        ) from error
    event.listen(engine.sync_engine, "connect", _set_up_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _parsed(url: str) -> URL:
    hint = "For example sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/NAME."
    try:
        parsed = make_url(url if "://" in url else f"sqlite:///{url}")
    except ArgumentError as error:
        raise ConfigError("the database's URL cannot be read", hint=hint) from error
    backend = parsed.drivername.partition("+")[0]
    if backend not in _DRIVERS or (backend == "sqlite" and parsed.database in (None, "", ":memory:")):
        raise ConfigError(f"no database of the kind {parsed.drivername!r} can be used", hint=hint)
    return parsed.set(drivername=_DRIVERS[backend])


def _make_file(path: Path) -> None:
    """Make the file, readable by its owner only: SQLite gives the files beside it the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise ConfigError(
            f"the database {path} cannot be opened: {error.strerror}", hint="Name a file in a folder of your own."
        ) from error


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver begins no transactions by itself
    cursor = connection.cursor()
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _as_unavailable() -> Iterator[None]:
    """Turn the database's own failures into `UnavailableError`. What it said goes to the log, not to clients."""
    try:
        yield
    except _OURS:
        raise
    except (DBAPIError, PoolTimeoutError, OSError) as error:
        reason = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        _log.warning("the database failed: %s", reason)
        raise UnavailableError(
            f"the server's database {_what_is_wrong(reason)}",
            hint="Ask again in a while; the server's log says more.",
            code="storage_unavailable",
        ) from error


def _what_is_wrong(reason: str) -> str:
    if "full" in reason or "No space" in reason:
        return "has no space left"
    if "locked" in reason:
        return "is locked by another process"
    return "cannot be used now"
