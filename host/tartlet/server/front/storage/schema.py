"""The version of the tables, and how older ones become the newest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from sqlalchemy import inspect, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from tartlet.errors import ConfigError
from tartlet.server.front.storage.database import Database
from tartlet.server.front.storage.tables import metadata, schema_version

Migration: TypeAlias = Callable[[AsyncConnection], Awaitable[None]]

MIGRATIONS: Sequence[Migration] = ()
"""What makes version 2 of version 1, version 3 of version 2, and so on. A change of `tables.py` needs one more."""

_LOCK = 7_263_541  # of PostgreSQL, for whoever looks after the schema


async def make_ready(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Make the tables, or bring them to the newest version, all in one transaction. One process does it at a time.

    Raises:
        ConfigError: A newer Tartlet has written the database.
    """
    newest = len(migrations) + 1

    async def work(connection: AsyncConnection) -> None:
        if not database.is_sqlite:
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        version = await _version(connection)
        if version is None:
            await connection.run_sync(metadata.create_all)
            await connection.execute(schema_version.insert().values(version=newest))
            return
        if version > newest:
            raise ConfigError(
                f"the database has version {version} of the tables, this Tartlet knows {newest}",
                hint="Use the Tartlet that has written it, or a newer one.",
            )
        for migrate in migrations[version - 1 :]:
            await migrate(connection)
        await connection.execute(update(schema_version).values(version=newest))

    await database.write(work)


async def _version(connection: AsyncConnection) -> int | None:
    has_tables = await connection.run_sync(lambda sync: inspect(sync).has_table(schema_version.name))
    return await connection.scalar(select(schema_version.c.version)) if has_tables else None
