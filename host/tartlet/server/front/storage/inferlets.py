"""Which inferlets tenants have uploaded. The files are kept elsewhere, by digest."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec
from sqlalchemy import Connection, Select, delete, func, select, tuple_

from tartlet.errors import QuotaError
from tartlet.server.front.storage import tables
from tartlet.server.front.storage.database import Database
from tartlet.server.front.storage.names import require_inferlet, resolved
from tartlet.server.front.storage.remembered import Remembered, raise_revision, read_revision
from tartlet.server.front.storage.tenants import lock_tenant
from tartlet.server.requests import ProgramFacts

Kind = Literal["component", "source"]
_inferlets, _names = tables.inferlets, tables.names


class InferletRecord(msgspec.Struct, frozen=True):
    """An inferlet of a tenant."""

    tenant: str
    digest: str
    """SHA-256 of the file, in hexadecimal."""
    kind: Kind
    num_bytes: int
    facts: ProgramFacts
    created_ms: int
    names: tuple[str, ...] = ()
    """That stand for it now, sorted."""


class Inferlets:
    """The inferlets of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: Remembered[tuple[str, str], InferletRecord] = Remembered(database)

    async def put(
        self,
        tenant: str,
        digest: str,
        kind: Kind,
        num_bytes: int,
        facts: ProgramFacts,
        *,
        most: int | None = None,
        most_bytes: int | None = None,
    ) -> bool:
        """Note that a tenant has uploaded an inferlet. Once more does nothing; returns whether it is new.

        Args:
            tenant: Whose.
            digest: Of its file.
            kind: What is in that.
            num_bytes: How long it is.
            facts: What is known of it.
            most: How many inferlets the tenant may have; None: any number.
            most_bytes: How many bytes all of them together.

        Raises: NotFoundError (the tenant), QuotaError.
        """
        values = {"tenant": tenant, "digest": digest, "kind": kind, "num_bytes": num_bytes}
        values |= {"facts": msgspec.json.encode(facts).decode(), "created_ms": self._database.now_ms()}

        def work(connection: Connection) -> bool:
            lock_tenant(connection, tenant)
            mine = _inferlets.c.tenant == tenant
            if connection.scalar(select(func.count()).where(mine, _inferlets.c.digest == digest)):
                return False
            counting = select(func.count(), func.coalesce(func.sum(_inferlets.c.num_bytes), 0)).where(mine)
            has, has_bytes = connection.execute(counting).one()
            if most is not None and has >= most:
                raise QuotaError("quota", limit="inferlets", used=has + 1, allowed=most)
            if most_bytes is not None and has_bytes + num_bytes > most_bytes:
                used = int(has_bytes) + num_bytes
                raise QuotaError("quota", limit="inferlet_bytes", used=used, allowed=most_bytes)
            connection.execute(self._database.insert(_inferlets).values(values))
            raise_revision(connection, tenant)
            return True

        return await self._database.write(work)

    async def get(self, tenant: str, digest: str) -> InferletRecord:
        """One inferlet. Raises NotFoundError."""

        def work(connection: Connection) -> InferletRecord:
            require_inferlet(connection, tenant, digest)
            return _read_one(connection, tenant, digest)

        return await self._database.read(work)

    async def find(self, tenant: str, ref: str) -> InferletRecord:
        """The inferlet that is meant, as `Names.resolve` understands it; remembered. Raises what that raises."""

        def work(connection: Connection) -> tuple[str, int, InferletRecord]:
            revision = read_revision(connection, tenant)
            return tenant, revision, _read_one(connection, tenant, resolved(connection, tenant, ref))

        return await self._known.get((tenant, ref), lambda: self._database.read(work))

    async def list(self, tenant: str, *, limit: int = 100, after: InferletRecord | None = None) -> list[InferletRecord]:
        """The inferlets of a tenant, the newest first, at most `limit`, of those that come after one of them."""
        columns = (_inferlets.c.created_ms, _inferlets.c.digest)
        statement = select(_inferlets).where(_inferlets.c.tenant == tenant)
        if after is not None:
            statement = statement.where(tuple_(*columns) < tuple_(after.created_ms, after.digest))
        statement = statement.order_by(*(column.desc() for column in columns)).limit(limit)
        return await self._database.read(lambda connection: _read(connection, statement))

    async def delete(self, tenant: str, digest: str) -> None:
        """Delete an inferlet and its names, so that its file can go. Raises NotFoundError."""

        def work(connection: Connection) -> None:
            lock_tenant(connection, tenant)
            require_inferlet(connection, tenant, digest)
            for table in (_names, _inferlets):
                connection.execute(delete(table).where(table.c.tenant == tenant, table.c.digest == digest))
            raise_revision(connection, tenant)

        await self._database.write(work)

    async def all(self) -> set[tuple[str, str]]:
        """The tenants and digests of all there are. Files of others can go."""
        rows = await self._database.rows(select(_inferlets.c.tenant, _inferlets.c.digest))
        return {(row["tenant"], row["digest"]) for row in rows}


def _read_one(connection: Connection, tenant: str, digest: str) -> InferletRecord:
    mine = (_inferlets.c.tenant == tenant, _inferlets.c.digest == digest)
    return _read(connection, select(_inferlets).where(*mine))[0]


def _read(connection: Connection, statement: Select[Any]) -> list[InferletRecord]:
    rows = connection.execute(statement).all()
    names: dict[str, list[str]] = {row.digest: [] for row in rows}
    if rows:
        mine = (_names.c.tenant == rows[0].tenant, _names.c.digest.in_(names))
        for name in connection.execute(select(_names.c.digest, _names.c.name).where(*mine)):
            names[name.digest].append(name.name)
    return [
        InferletRecord(
            row.tenant,
            row.digest,
            next(kind for kind in get_args(Kind) if kind == row.kind),
            row.num_bytes,
            msgspec.json.decode(row.facts, type=ProgramFacts),
            row.created_ms,
            tuple(sorted(names[row.digest])),
        )
        for row in rows
    ]
