"""The database: connections, transactions, and what its failures become. Knows no table.

Work on it is a plain function of a SQLAlchemy connection, which is one transaction; it may be called again if it had to
be undone. On SQLite it is done in threads of our own (`sqlite_transactions.py`). For PostgreSQL the same function
runs on the event loop, and suspends there (SQLAlchemy's `run_sync`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias, TypeVar

from sqlalchemy import URL, RowMapping, Select, Table, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from tartlet.errors import ConfigError, UnavailableError
from tartlet.server.front.storage.sqlite_transactions import FAULTS_OF_STATEMENTS, Work, open_sqlite

BUSY_TIMEOUT_S = 5.0
"""How long a write waits for other processes; and any request for a connection of the pool."""
POOL_SIZE = 8

Clock: TypeAlias = Callable[[], float]
"""Seconds since 1970, as `time.time`."""
T = TypeVar("T")

_FRONT_LOCK = 7_263_543  # of PostgreSQL, for the one front that uses a database
_log = logging.getLogger("tartlet.server.storage")
_SIGNS_OF_DAMAGE = ("file is not a database", "disk image is malformed")
_DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+asyncpg", "postgres": "postgresql+asyncpg"}


class Transactions(Protocol):
    """How a kind of database does work, each piece in a transaction of its own."""

    def read(self, work: Work[T]) -> Coroutine[Any, Any, T]:
        """See one state of the database."""
        ...

    def write(self, work: Work[T], *, is_lazy: bool) -> Coroutine[Any, Any, T]:
        """Commit what `work` does, or nothing of it if it raises. What is lazy need not be on disk then."""
        ...

    def number(self, query: str, values: Mapping[str, str]) -> Coroutine[Any, Any, int | None]:
        """One number that is in the database, as cheaply as it can be had; None: the query finds nothing."""
        ...

    def hold(self) -> Coroutine[Any, Any, bool]:
        """Keep the database for this object until it is closed, from others who want to hold it; False: one does."""
        ...

    async def close(self) -> None:
        """Close all connections; nothing is going on."""
        ...


class PostgresTransactions:
    """PostgreSQL, on the event loop."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._holding: AsyncConnection | None = None

    async def read(self, work: Work[T]) -> T:
        """See `Transactions`."""
        async with self._engine.connect() as connection:
            return await connection.run_sync(work)

    async def write(self, work: Work[T], *, is_lazy: bool) -> T:
        """See `Transactions`."""
        async with self._engine.begin() as connection:
            if is_lazy:
                await connection.execute(text("SET LOCAL synchronous_commit = off"))
            return await connection.run_sync(work)

    async def number(self, query: str, values: Mapping[str, str]) -> int | None:
        """See `Transactions`."""
        return await self.read(lambda connection: connection.scalar(text(query), values))

    async def hold(self) -> bool:
        """See `Transactions`. The lock goes with the connection, and so with this process."""
        connection = await self._engine.connect()
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        if await connection.scalar(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": _FRONT_LOCK}):
            self._holding = connection
            return True
        await connection.close()
        return False

    async def close(self) -> None:
        """See `Transactions`."""
        if self._holding is not None:
            await self._holding.invalidate()  # closes it: in the pool, it would still hold the lock
            await self._holding.close()
        await self._engine.dispose()


class Database:
    """Transactions whose failures are errors of ours. All methods are called on one event loop.

    Args:
        url: `sqlite:///FILE`, a path to such a file, or `postgresql://USER:PASSWORD@HOST/NAME`.
        clock: Seconds since 1970.

    Raises:
        ConfigError: The URL is none of these, the driver is missing, or the file cannot be made.
    """

    def __init__(self, url: str, clock: Clock = time.time) -> None:
        parsed = parse_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self._transactions = open_sqlite(parsed, BUSY_TIMEOUT_S) if self.is_sqlite else _open_postgres(parsed)
        self._clock = clock
        self._going_on: set[asyncio.Task[Any]] = set()

    def now_ms(self) -> int:
        """The time."""
        return int(self._clock() * 1000)

    def insert(self, table: Table) -> Any:
        """An `INSERT` that knows `on_conflict_do_nothing` and `on_conflict_do_update`, which both databases have."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    async def rows(self, statement: Select[Any]) -> Sequence[RowMapping]:
        """What a query finds. Raises UnavailableError."""
        return await self.read(lambda connection: connection.execute(statement).mappings().all())

    async def read(self, work: Work[T]) -> T:
        """Do work that sees one state of the database. Raises UnavailableError, and what `work` raises."""
        return await self._finish(self._transactions.read(work))

    async def write(self, work: Work[T], *, is_lazy: bool = False) -> T:
        """Do work that is on disk when this returns; whatever it raises undoes it.

        Args:
            work: It may be called again, if it had to be undone.
            is_lazy: It need not be on disk. It survives this process all the same, but not a power cut, unless
                something that is on disk was written after it.

        Raises: UnavailableError, and what `work` raises.
        """
        return await self._finish(self._transactions.write(work, is_lazy=is_lazy))

    async def number(self, query: str, values: Mapping[str, str]) -> int | None:
        """One number, as cheaply as it can be had: on SQLite that takes microseconds. None: nothing is found.

        Raises UnavailableError.
        """
        with _as_unavailable():
            return await self._transactions.number(query, values)

    async def hold(self) -> bool:
        """Keep the database from others who want to hold it, until this is closed; False: one does."""
        return await self._finish(self._transactions.hold())

    async def close(self) -> None:
        """Wait for what has begun, and close all connections."""
        while self._going_on:
            await asyncio.wait(self._going_on)
        await self._transactions.close()

    async def _finish(self, transaction: Coroutine[Any, Any, T]) -> T:
        """Let a transaction come to its end, one way or the other, even if the caller is cancelled meanwhile."""
        task = asyncio.create_task(transaction)
        self._going_on.add(task)
        task.add_done_callback(self._ended)
        with _as_unavailable():
            return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._going_on.discard(task)
        if not task.cancelled():
            task.exception()  # it has been told to the caller, unless that has been cancelled


def _open_postgres(url: URL) -> Transactions:
    try:
        engine = create_async_engine(url, pool_size=POOL_SIZE, pool_timeout=BUSY_TIMEOUT_S, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the driver of {url.drivername} is not installed: {error.name}",
            hint="For PostgreSQL: pip install 'tartlet[postgres]'.",
        ) from error
    return PostgresTransactions(engine)


def parse_url(url: str) -> URL:
    """The URL of a database, with the driver that is used. Raises ConfigError if there cannot be one."""
    hint = "For example sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/NAME."
    try:
        parsed = make_url(url if "://" in url else f"sqlite:///{url}")
    except ArgumentError as error:
        raise ConfigError("the database's URL cannot be read", hint=hint) from error
    backend = parsed.drivername.partition("+")[0]
    if backend not in _DRIVERS or (backend == "sqlite" and parsed.database in (None, "", ":memory:")):
        raise ConfigError(f"no database of the kind {parsed.drivername!r} can be used", hint=hint)
    return parsed.set(drivername=_DRIVERS[backend])


@contextmanager
def _as_unavailable() -> Iterator[None]:
    """Turn the database's own failures into `UnavailableError`. What it said goes to the log, not to clients."""
    try:
        yield
    except FAULTS_OF_STATEMENTS:
        raise
    except (DBAPIError, PoolTimeoutError, OSError) as error:
        reason = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        _log.warning("the database failed: %s", reason)
        if any(sign in reason for sign in _SIGNS_OF_DAMAGE):
            what, hint = "is damaged", "The server's operator can restore a copy: docs/operate.md."
        else:
            what, hint = _what_is_wrong(reason), "Ask again in a while; the server's log says more."
        raise UnavailableError(
            f"the server's database {what}",
            hint=hint,
            code="storage_unavailable",
        ) from error


def _what_is_wrong(reason: str) -> str:
    if "full" in reason or "No space" in reason:
        return "has no space left"
    if "locked" in reason:
        return "is locked by another process"
    return "cannot be used now"
