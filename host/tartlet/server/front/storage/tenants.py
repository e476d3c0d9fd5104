"""Tenants: who owns keys, programs and runs, and what each may use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, select, update

from tartlet.arguments import checked_weight
from tartlet.errors import ConfigError, ConflictError, NotFoundError
from tartlet.server.front.storage import tables
from tartlet.server.front.storage.database import Database
from tartlet.server.front.storage.remembered import Remembered, raise_revision, read_revision

DEFAULT_TENANT = "default"
"""It is there from the first start, and cannot be deleted."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_tenants = tables.tenants


class TenantRecord(msgspec.Struct, frozen=True):
    """A tenant."""

    name: str
    weight: float
    """Its share of the engine against others'."""
    limits: dict[str, int | None]
    """What differs from the server's settings; names and meanings are those of `front/limits.py`. None: no limit."""
    is_enabled: bool
    """False: its keys are refused."""
    created_ms: int


class Tenants:
    """The tenants of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: Remembered[str, TenantRecord] = Remembered(database)

    async def create(
        self, name: str, *, weight: float = 1.0, limits: Mapping[str, int | None] | None = None
    ) -> TenantRecord:
        """Make a tenant.

        Raises:
            ConfigError: The name cannot be one (1 to 63 of a-z, 0-9, '-', '_'), or the weight.
            ConflictError: There is one of that name, or has been.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(f"a tenant's name has 1 to 63 of a-z, 0-9, '-' and '_', got {name[:80]!r}")
        record = TenantRecord(name, checked_weight(weight), dict(limits or {}), True, self._database.now_ms())

        def work(connection: Connection) -> None:
            insert = self._database.insert(_tenants).values(_to_row(record)).on_conflict_do_nothing()
            if connection.execute(insert).rowcount != 1:
                raise ConflictError(
                    f"there is, or has been, a tenant {name!r}",
                    hint="Names are not given out again: what a tenant has used and saved is known by its name.",
                )

        await self._database.write(work)
        return record

    async def make_default(self) -> None:
        """Make the built-in tenant, if it is not there."""
        record = TenantRecord(DEFAULT_TENANT, 1.0, {}, True, self._database.now_ms())
        insert = self._database.insert(_tenants).values(_to_row(record)).on_conflict_do_nothing()
        await self._database.write(lambda connection: connection.execute(insert))

    async def get(self, name: str) -> TenantRecord:
        """One tenant. Raises NotFoundError."""

        def work(connection: Connection) -> tuple[str, int, TenantRecord]:
            return name, read_revision(connection, name), _find(connection, name, is_locked=False)

        _check_name(name)
        return await self._known.get(name, lambda: self._database.read(work))

    async def list(self) -> list[TenantRecord]:
        """All tenants, by name."""
        statement = select(_tenants).where(_tenants.c.deleted_ms.is_(None)).order_by(_tenants.c.name)
        return [to_tenant(row) for row in await self._database.rows(statement)]

    async def change(
        self,
        name: str,
        *,
        weight: float | None = None,
        limits: Mapping[str, int | None] | None = None,
        reset: tuple[str, ...] = (),
        is_enabled: bool | None = None,
    ) -> TenantRecord:
        """Change what is not None; `limits` go over those that the tenant has, and those in `reset` are dropped.

        Raises: NotFoundError, ConfigError.
        """

        def work(connection: Connection) -> TenantRecord:
            old = _find(connection, name, is_locked=True)
            merged = {key: value for key, value in (old.limits | dict(limits or {})).items() if key not in reset}
            new = TenantRecord(
                name,
                old.weight if weight is None else checked_weight(weight),
                merged,
                old.is_enabled if is_enabled is None else is_enabled,
                old.created_ms,
            )
            connection.execute(update(_tenants).where(_tenants.c.name == name).values(_to_row(new)))
            raise_revision(connection, name)
            return new

        return await self._database.write(work)

    async def delete(self, name: str) -> None:
        """Delete a tenant with its keys, programs, names and idempotency keys; its runs and usage stay on record.

        Raises: NotFoundError; ConflictError for the built-in one.
        """
        if name == DEFAULT_TENANT:
            raise ConflictError(f"the tenant {name!r} is built in", hint="Disable it instead.")

        def work(connection: Connection) -> None:
            lock_tenant(connection, name)
            for table in (tables.keys, tables.names, tables.inferlets, tables.idempotency):
                connection.execute(delete(table).where(table.c.tenant == name))
            values = {"deleted_ms": self._database.now_ms(), "is_enabled": False, "limits": "{}"}
            connection.execute(update(_tenants).where(_tenants.c.name == name).values(values))
            raise_revision(connection, name)

        await self._database.write(work)


def lock_tenant(connection: Connection, name: str) -> TenantRecord:
    """Hold a tenant until the transaction's end, so that what is counted of it stays so. Raises NotFoundError."""
    return _find(connection, name, is_locked=True)


def to_tenant(row: Mapping[Any, Any]) -> TenantRecord:
    """The record of a row that has all columns of the table."""
    limits = msgspec.json.decode(row["limits"], type=dict[str, int | None])
    return TenantRecord(row["name"], row["weight"], limits, row["is_enabled"], row["created_ms"])


def _find(connection: Connection, name: str, *, is_locked: bool) -> TenantRecord:
    _check_name(name)
    statement = select(_tenants).where(_tenants.c.name == name, _tenants.c.deleted_ms.is_(None))
    if is_locked:
        statement = statement.with_for_update(key_share=True)
    row = connection.execute(statement).mappings().first()
    if row is None:
        raise _not_found(name)
    return to_tenant(row)


def _check_name(name: str) -> None:
    """Refuse what no tenant can be called, before the database does so in its way. Raises NotFoundError."""
    if not _NAME.fullmatch(name):
        raise _not_found(name)


def _not_found(name: str) -> NotFoundError:
    return NotFoundError(f"there is no tenant {name[:80]!r}")


def _to_row(record: TenantRecord) -> dict[str, object]:
    return {**msgspec.structs.asdict(record), "limits": msgspec.json.encode(record.limits).decode()}
