"""The version of the tables, and how older ones become the newest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sqlalchemy import Connection, inspect, select, text, update

from tartlet.errors import ConfigError
from tartlet.server.front.storage.database import Database
from tartlet.server.front.storage.tables import metadata, schema_version

Migration: TypeAlias = Callable[[Connection], None]


def _add_revisions(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE tenants ADD COLUMN revision BIGINT NOT NULL DEFAULT 0"))


def _add_page_seconds(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE usage ADD COLUMN page_seconds FLOAT NOT NULL DEFAULT 0"))


MIGRATIONS: Sequence[Migration] = (_add_revisions, _add_page_seconds)
"""What makes version 2 of version 1, version 3 of version 2, and so on. A change of `tables.py` needs one more."""

_LOCK = 7_263_541  # of PostgreSQL, for whoever looks after the schema


async def make_ready(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Make the tables, or bring them to the newest version, all in one transaction. One process does it at a time.

    Raises:
        ConfigError: A newer Tartlet has written the database.
    """
    newest = len(migrations) + 1

    def work(connection: Connection) -> None:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        version = _version(connection)
        if version is None:
            metadata.create_all(connection)
            connection.execute(schema_version.insert().values(version=newest))
            return
        if version > newest:
            raise ConfigError(
                f"the database has version {version} of the tables, this Tartlet knows {newest}",
                hint="Use the Tartlet that has written it, or a newer one.",
            )
        for migrate in migrations[version - 1 :]:
            migrate(connection)
        connection.execute(update(schema_version).values(version=newest))

    await database.write(work)


def _version(connection: Connection) -> int | None:
    has_tables = inspect(connection).has_table(schema_version.name)
    return connection.scalar(select(schema_version.c.version)) if has_tables else None
