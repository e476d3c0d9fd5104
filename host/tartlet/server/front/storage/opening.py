"""Opens the storage of the server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tartlet import paths
from tartlet.errors import ConfigError
from tartlet.server.front.storage.database import Clock, Database
from tartlet.server.front.storage.ends import Ends
from tartlet.server.front.storage.idempotency import Idempotency
from tartlet.server.front.storage.inferlets import Inferlets
from tartlet.server.front.storage.keys import Keys
from tartlet.server.front.storage.names import Names
from tartlet.server.front.storage.runs import Runs
from tartlet.server.front.storage.schema import MIGRATIONS, Migration, make_ready
from tartlet.server.front.storage.tenants import Tenants
from tartlet.server.front.storage.usage import Usage


class Storage:
    """What the server remembers, by subject."""

    def __init__(self, database: Database) -> None:
        self.tenants = Tenants(database)
        self.keys = Keys(database)
        self.inferlets = Inferlets(database)
        self.names = Names(database)
        self.runs = Runs(database)
        self.ends = Ends(self.runs)
        self.usage = Usage(database)
        self.idempotency = Idempotency(database)
        self._database = database

    async def become_front(self) -> None:
        """Use the database as a front does, which thinks that all runs in it are its own. Others may read and write.

        Raises:
            ConfigError: Another front uses it.
            UnavailableError: The database cannot be used now.
        """
        if not await self._database.hold():
            raise ConfigError(
                "another server uses the database",
                hint="Stop it, or give this one a database of its own, as with TARTLET_HOME or TARTLET_DATABASE.",
            )


@asynccontextmanager
async def open_storage(
    url: str | None = None, *, clock: Clock = time.time, migrations: Sequence[Migration] = MIGRATIONS
) -> AsyncIterator[Storage]:
    """Open the storage, with tables of the newest version and the built-in tenant.

    Args:
        url: `sqlite:///FILE`, a path to such a file, or `postgresql://USER:PASSWORD@HOST/NAME`; None: `default_url()`.
        clock: Seconds since 1970.
        migrations: What brings older tables to the newest version.

    Raises:
        ConfigError: There cannot be a database of that URL, or a newer Tartlet has written it.
        UnavailableError: The database does not answer, is locked, or has no space left.
    """
    database = Database(url or default_url(), clock)
    try:
        await make_ready(database, migrations)
        storage = Storage(database)
        await storage.tenants.make_default()
        try:
            yield storage
        finally:
            await storage.ends.close()
    finally:
        await database.close()


def default_url() -> str:
    """A file in `TARTLET_HOME`, in a folder that is the owner's alone."""
    return f"sqlite:///{paths.server_folder() / 'tartlet.db'}"
