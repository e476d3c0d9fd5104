"""What is looked up for every request, kept in memory for as long as nobody has changed it, in whatever process.

Each tenant's row has a revision. Who changes what is remembered of a tenant raises it in the same transaction; to see
whether it has been raised costs next to nothing (`Database.number`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, select, update

from tartlet.server.front.storage import tables
from tartlet.server.front.storage.database import Database

MOST_KEPT = 4096
"""Of a kind; those used longest ago go."""

_tenants = tables.tenants
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Values that were read, by key. All methods are called on one event loop."""

    def __init__(self, database: Database, most: int = MOST_KEPT) -> None:
        self._database = database
        self._most = most
        self._kept: OrderedDict[K, tuple[str, int, V]] = OrderedDict()

    async def get(self, key: K, read: Callable[[], Coroutine[Any, Any, tuple[str, int, V]]]) -> V:
        """The value of a key, which is read if it is not known, or the tenant's revision has been raised.

        Args:
            key: Whose value.
            read: Gives a tenant, its revision in the same transaction, and the value. What it raises is not kept.
        """
        kept = self._kept.get(key)
        if kept is None or await revision_of(self._database, kept[0]) != kept[1]:
            kept = await read()
            self._kept[key] = kept
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        elif key in self._kept:
            self._kept.move_to_end(key)
        return kept[2]


async def revision_of(database: Database, tenant: str) -> int | None:
    """A tenant's revision now. None: there is no such row."""
    return await database.number("SELECT revision FROM tenants WHERE name = :name", {"name": tenant})


def read_revision(connection: Connection, tenant: str) -> int:
    """A tenant's revision; 0: there is no such row. It is to be read before what is remembered with it."""
    return connection.scalar(select(_tenants.c.revision).where(_tenants.c.name == tenant)) or 0


def raise_revision(connection: Connection, tenant: str) -> None:
    """Let nobody go on with what is remembered of a tenant: it changes with this transaction."""
    statement = update(_tenants).where(_tenants.c.name == tenant)
    connection.execute(statement.values(revision=_tenants.c.revision + 1))
