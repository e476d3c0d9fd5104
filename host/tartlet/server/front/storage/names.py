"""What tenants call their inferlets: `name` or `name@version`, each standing for a digest until it is moved."""

from __future__ import annotations

import re

import msgspec
from sqlalchemy import Connection, delete, func, select

from tartlet.errors import ConfigError, ConflictError, NotFoundError, QuotaError
from tartlet.server.front.storage import tables
from tartlet.server.front.storage.database import Database
from tartlet.server.front.storage.remembered import raise_revision
from tartlet.server.front.storage.tenants import lock_tenant
from tartlet.versions import version_key

DIGEST_LEN = 64
LEAST_PREFIX_LEN = 12
"""Hexadecimal digits of a digest that can stand for it."""

_BASE = r"[a-z0-9][a-z0-9._-]{0,63}"
_NAME = re.compile(rf"{_BASE}(@[A-Za-z0-9][A-Za-z0-9.+_-]{{0,63}})?")
_DIGITS = re.compile(rf"[0-9a-f]{{{LEAST_PREFIX_LEN},{DIGEST_LEN}}}")
_names, _inferlets = tables.names, tables.inferlets


class NameRecord(msgspec.Struct, frozen=True):
    """A name, and what it stands for."""

    name: str
    """`name` or `name@version`."""
    digest: str
    tagged_ms: int


class Names:
    """The names of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tag(
        self, tenant: str, name: str, digest: str, *, replace: bool = True, most: int | None = None
    ) -> str | None:
        """Let a name stand for an inferlet, and return the digest for which it stood before.

        Args:
            tenant: Whose name and inferlet.
            name: `name` or `name@version`.
            digest: All of it.
            replace: The name may stand for something else now.
            most: How many names the tenant may have; None: any number.

        Raises:
            ConfigError: That cannot be a name.
            NotFoundError: The tenant has no such inferlet.
            ConflictError: The name stands for something else, and `replace` is false.
            QuotaError: There are too many names.
        """
        check_name(name)

        def work(connection: Connection) -> str | None:
            lock_tenant(connection, tenant)
            require_inferlet(connection, tenant, digest)
            mine = _names.c.tenant == tenant
            old = connection.scalar(select(_names.c.digest).where(mine, _names.c.name == name))
            if old is not None and old != digest and not replace:
                raise ConflictError(f"the name {name!r} stands for {old[:LEAST_PREFIX_LEN]} already")
            if old is None and most is not None:
                has = connection.scalar(select(func.count()).where(mine)) or 0
                if has >= most:
                    raise QuotaError("quota", limit="names", used=has + 1, allowed=most)
            changed = {"digest": digest, "tagged_ms": self._database.now_ms()}
            values = {"tenant": tenant, "name": name, "base": name.partition("@")[0], **changed}
            insert = self._database.insert(_names).values(values)
            connection.execute(insert.on_conflict_do_update(index_elements=["tenant", "name"], set_=changed))
            raise_revision(connection, tenant)
            return None if old is None else str(old)

        return await self._database.write(work)

    async def untag(self, tenant: str, name: str) -> str:
        """Let a name stand for nothing, and return what it stood for. Raises NotFoundError."""

        def work(connection: Connection) -> str:
            lock_tenant(connection, tenant)
            found = None
            if _NAME.fullmatch(name):
                mine = (_names.c.tenant == tenant, _names.c.name == name)
                found = connection.scalar(select(_names.c.digest).where(*mine))
                connection.execute(delete(_names).where(*mine))
                raise_revision(connection, tenant)
            if found is None:
                raise NotFoundError(f"there is no name {name[:200]!r}")
            return str(found)

        return await self._database.write(work)

    async def list(self, tenant: str, *, base: str | None = None) -> list[NameRecord]:
        """The names of a tenant, or those that begin with `base` before their version; the newest version last."""
        columns = (_names.c.name, _names.c.digest, _names.c.tagged_ms)
        statement = select(*columns).where(_names.c.tenant == tenant)
        if base is not None:
            statement = statement.where(_names.c.base == base)
        records = [NameRecord(**row) for row in await self._database.rows(statement)]
        return sorted(records, key=lambda record: (record.name.partition("@")[0], version_key(record.name)))

    async def resolve(self, tenant: str, ref: str) -> str:
        """The digest of the inferlet that is meant.

        Args:
            tenant: Whose.
            ref: A digest or its first 12 or more digits; `name@version`; or `name`, which is the one that has no
                version, or else the newest.

        Raises:
            NotFoundError: The tenant has none such.
            ConflictError: Several digests begin so.
        """
        return await self._database.read(lambda connection: resolved(connection, tenant, ref))


def resolved(connection: Connection, tenant: str, ref: str) -> str:
    """As `Names.resolve`."""
    if _DIGITS.fullmatch(ref.lower()):
        return _by_digits(connection, tenant, ref.lower())
    found = _by_name(connection, tenant, ref) if _NAME.fullmatch(ref) else None
    if found is None:
        raise NotFoundError(f"there is no inferlet {ref[:200]!r}")
    return found


def check_name(name: str) -> None:
    """Refuse what cannot be a name. Raises ConfigError."""
    if not _NAME.fullmatch(name) or _DIGITS.fullmatch(name):
        raise ConfigError(
            f"an inferlet cannot be called {name[:200]!r}",
            hint="Names are `name` or `name@version`: 1 to 64 of a-z, 0-9, '.', '_', '-', and no digest; a version "
            "has 1 to 64 letters, digits, '.', '+', '_', '-'.",
        )


def require_inferlet(connection: Connection, tenant: str, digest: str) -> None:
    """Raise NotFoundError if the tenant has no such inferlet."""
    found = None
    if len(digest) == DIGEST_LEN and _DIGITS.fullmatch(digest):
        mine = (_inferlets.c.tenant == tenant, _inferlets.c.digest == digest)
        found = connection.scalar(select(_inferlets.c.digest).where(*mine))
    if found is None:
        raise NotFoundError(f"there is no inferlet {digest[:DIGEST_LEN]!r}")


def _by_digits(connection: Connection, tenant: str, digits: str) -> str:
    column = _inferlets.c.digest
    statement = select(column).where(_inferlets.c.tenant == tenant)
    statement = statement.where(column >= digits, column < digits + "g").limit(2)  # "g" comes after every digit
    found = connection.scalars(statement).all()
    if not found:
        raise NotFoundError(f"there is no inferlet {digits!r}")
    if len(found) > 1:
        raise ConflictError(f"several inferlets begin with {digits!r}", hint="Give more digits.", code="ambiguous")
    return str(found[0])


def _by_name(connection: Connection, tenant: str, name: str) -> str | None:
    column = _names.c.name if "@" in name else _names.c.base
    statement = select(_names.c.name, _names.c.digest).where(_names.c.tenant == tenant, column == name)
    rows = connection.execute(statement).all()
    exact = next((row.digest for row in rows if row.name == name), None)
    if exact is not None or not rows:
        return exact
    return str(max(rows, key=lambda row: version_key(row.name)).digest)
