"""API keys. A key is shown when it is made, and never again: only its hash is kept."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, and_, func, or_, select, text, update

from tartlet.errors import ConfigError, ConflictError, NotFoundError, QuotaError, UnavailableError
from tartlet.server.front.storage import tables
from tartlet.server.front.storage.database import Database
from tartlet.server.front.storage.remembered import Remembered, raise_revision
from tartlet.server.front.storage.tenants import DEFAULT_TENANT, TenantRecord, lock_tenant, to_tenant

SCOPES = ("runs:start", "runs:read", "inferlets:write", "inferlets:read", "openai", "admin")
"""What a key can be good for. `admin` is for operators' keys alone, and means all of them."""
TENANT_SCOPES = SCOPES[:-1]
"""What a tenant's key is good for, unless it is said."""
MOST_KEYS = 1000
"""That a tenant may have at a time, expired ones included; and the operators together."""
TOUCH_MS = 60_000
"""How often it is written down, at most, when a key was used last."""

_MARK = "tlk_"
_VISIBLE_LEN = len(_MARK) + 8
_RANDOM_BYTES = 24
_TOKEN = re.compile(rf"{_MARK}[0-9a-f]{{{2 * _RANDOM_BYTES}}}")
_MOST_LABEL_CHARS = 200
_FIRST_KEY_LOCK = 7_263_542  # of PostgreSQL
_keys = tables.keys


class KeyRecord(msgspec.Struct, frozen=True):
    """What is known of a key."""

    key_id: str
    """What the key begins with. It names the key, and is no secret."""
    tenant: str | None
    """None: an operator's."""
    label: str
    scopes: tuple[str, ...]
    created_ms: int
    expires_ms: int | None = None
    last_used_ms: int | None = None
    """To the minute."""
    revoked_ms: int | None = None
    replaced_by: str | None = None
    """The key that this one was rotated into."""

    def allows(self, scope: str) -> bool:
        """Whether it is good for that."""
        return scope in self.scopes or "admin" in self.scopes


class NewKey(msgspec.Struct, frozen=True):
    """A key that has just been made."""

    token: str
    """The key itself."""
    record: KeyRecord


class Caller(msgspec.Struct, frozen=True):
    """Who has shown a key that is valid."""

    key: KeyRecord
    tenant: TenantRecord | None
    """None: an operator. It may be disabled."""


class Keys:
    """The keys of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._touched_ms: dict[str, int] = {}
        self._callers: Remembered[str, Caller] = Remembered(database)  # by the hash of the key

    async def create(
        self,
        tenant: str | None,
        *,
        scopes: Sequence[str] | None = None,
        label: str = "",
        lifetime_ms: int | None = None,
    ) -> NewKey:
        """Make a key of a tenant, or of an operator (None).

        Args:
            tenant: Whose.
            scopes: What it is good for; None: everything that it can be.
            label: What people call it.
            lifetime_ms: For how long it is valid; None: until it is revoked.

        Raises: ConfigError, NotFoundError (the tenant), QuotaError.
        """
        checked = _checked_scopes(tenant, scopes)
        if len(label) > _MOST_LABEL_CHARS or not label.isprintable():
            raise ConfigError(f"a key's label has at most {_MOST_LABEL_CHARS} printable characters")
        made = self._make(tenant, checked, label, lifetime_ms)

        def work(connection: Connection) -> None:
            if tenant is not None:
                lock_tenant(connection, tenant)
            self._add(connection, made)

        await self._database.write(work)
        return made

    async def create_first(self) -> NewKey | None:
        """Make an operator's key, if there never was one. Of several processes that ask at once, one gets it."""
        made = self._make(None, ("admin",), "first", None)

        def work(connection: Connection) -> NewKey | None:
            if not self._database.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _FIRST_KEY_LOCK})
            if connection.scalar(select(func.count()).where(_keys.c.tenant.is_(None))):
                return None
            self._add(connection, made)
            return made

        return await self._database.write(work)

    async def authenticate(self, token: str) -> Caller | None:
        """Whose key this is; None if it is unknown, expired or revoked. Notes that it was used."""
        if not _TOKEN.fullmatch(token):
            return None
        hashed = _hash(token)
        try:
            caller = await self._callers.get(hashed, lambda: self._database.read(lambda it: _read_caller(it, hashed)))
        except NotFoundError:
            return None
        key, now_ms = caller.key, self._database.now_ms()
        if key.revoked_ms is not None or (key.expires_ms is not None and key.expires_ms <= now_ms):
            return None
        await self._touch(key, now_ms)
        return caller

    async def list(self, tenant: str | None = None, *, of_operators: bool = False) -> list[KeyRecord]:
        """The keys of a tenant, of the operators, or all (None), the newest first."""
        statement = select(_keys).order_by(_keys.c.created_ms.desc(), _keys.c.key_id)
        if tenant is not None or of_operators:
            statement = statement.where(_keys.c.tenant == tenant)
        return [_to_record(row) for row in await self._database.rows(statement)]

    async def rotate(self, key_id: str, *, grace_ms: int, tenant: str | None = None) -> NewKey:
        """Make a key in place of another, which stays valid for a grace time, and not longer than it would have.

        The new one is for the same, and lives as long after its making as the old one was meant to.

        Args:
            key_id: What the old one begins with.
            grace_ms: How long that stays valid.
            tenant: Whose it must be; None: anybody's.

        Raises: NotFoundError; ConflictError if it has been rotated or revoked, or has expired.
        """

        def work(connection: Connection) -> NewKey:
            old = self._find(connection, key_id, tenant)
            now_ms = self._database.now_ms()
            if old.replaced_by is not None:
                raise ConflictError(f"the key {key_id} has been rotated already, into {old.replaced_by}")
            if old.revoked_ms is not None or (old.expires_ms is not None and old.expires_ms <= now_ms):
                raise ConflictError(f"the key {key_id} is not valid any more", hint="Create a new one.")
            lifetime_ms = None if old.expires_ms is None else old.expires_ms - old.created_ms
            made = self._make(old.tenant, old.scopes, old.label, lifetime_ms)
            self._add(connection, made)
            ends = [now_ms + grace_ms] if old.expires_ms is None else [now_ms + grace_ms, old.expires_ms]
            changed = {"expires_ms": min(ends), "replaced_by": made.record.key_id}
            connection.execute(update(_keys).where(_keys.c.key_id == key_id).values(changed))
            raise_revision(connection, old.tenant or DEFAULT_TENANT)
            return made

        return await self._database.write(work)

    async def revoke(self, key_id: str, *, tenant: str | None = None) -> KeyRecord:
        """Make a key invalid at once. Once more does nothing. Raises NotFoundError."""

        def work(connection: Connection) -> KeyRecord:
            old = self._find(connection, key_id, tenant)
            if old.revoked_ms is not None:
                return old
            now_ms = self._database.now_ms()
            connection.execute(update(_keys).where(_keys.c.key_id == key_id).values(revoked_ms=now_ms))
            raise_revision(connection, old.tenant or DEFAULT_TENANT)
            return msgspec.structs.replace(old, revoked_ms=now_ms)

        return await self._database.write(work)

    def _make(self, tenant: str | None, scopes: tuple[str, ...], label: str, lifetime_ms: int | None) -> NewKey:
        token = _MARK + secrets.token_hex(_RANDOM_BYTES)
        now_ms = self._database.now_ms()
        expires_ms = None if lifetime_ms is None else now_ms + lifetime_ms
        return NewKey(token, KeyRecord(token[:_VISIBLE_LEN], tenant, label, scopes, now_ms, expires_ms))

    def _add(self, connection: Connection, made: NewKey) -> None:
        record = made.record
        has = connection.scalar(
            select(func.count()).where(_keys.c.tenant == record.tenant, _keys.c.revoked_ms.is_(None))
        )
        if has is not None and has >= MOST_KEYS:
            raise QuotaError("quota", limit="keys", used=has + 1, allowed=MOST_KEYS, hint="Revoke some.")
        values = {**msgspec.structs.asdict(record), "hash": _hash(made.token)}
        values["scopes"] = msgspec.json.encode(record.scopes).decode()
        connection.execute(self._database.insert(_keys).values(values))

    def _find(self, connection: Connection, key_id: str, tenant: str | None) -> KeyRecord:
        """A key, held until the transaction's end."""
        row = None
        if len(key_id) == _VISIBLE_LEN and key_id.isascii() and key_id.isprintable():
            statement = select(_keys).where(_keys.c.key_id == key_id).with_for_update(key_share=True)
            row = connection.execute(statement).mappings().first()
        if row is None or (tenant is not None and row["tenant"] != tenant):
            raise NotFoundError(f"there is no key {key_id[:40]!r}", hint="A key is named by what it begins with.")
        return _to_record(row)

    async def _touch(self, key: KeyRecord, now_ms: int) -> None:
        """Note that a key was used. That it cannot be noted now is no reason to refuse the key."""
        last_ms = max(key.last_used_ms or 0, self._touched_ms.get(key.key_id, 0))
        if now_ms - last_ms < TOUCH_MS:
            return
        self._touched_ms[key.key_id] = now_ms
        older = or_(_keys.c.last_used_ms.is_(None), _keys.c.last_used_ms < now_ms)
        statement = update(_keys).where(and_(_keys.c.key_id == key.key_id, older)).values(last_used_ms=now_ms)
        try:
            await self._database.write(lambda connection: connection.execute(statement), is_lazy=True)
        except UnavailableError:
            return


def _read_caller(connection: Connection, hashed: str) -> tuple[str, int, Caller]:
    """Whose key it is that has this hash, for `Remembered`. Raises NotFoundError."""
    owner = func.coalesce(_keys.c.tenant, DEFAULT_TENANT)
    joined = _keys.join(tables.tenants, tables.tenants.c.name == owner)
    tenant_columns = [column.label(f"tenant_{column.name}") for column in tables.tenants.c]
    # One statement, so that the revision is not newer than what is read with it.
    statement = select(*_keys.c, *tenant_columns).select_from(joined).where(_keys.c.hash == hashed)
    row = connection.execute(statement).mappings().first()
    if row is None:
        raise NotFoundError("there is no such key")
    key = _to_record(row)
    tenant = to_tenant({column.name: row[f"tenant_{column.name}"] for column in tables.tenants.c})
    return tenant.name, row["tenant_revision"], Caller(key, tenant if key.tenant is not None else None)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _checked_scopes(tenant: str | None, scopes: Sequence[str] | None) -> tuple[str, ...]:
    possible = SCOPES if tenant is None else TENANT_SCOPES
    if scopes is None:
        return ("admin",) if tenant is None else TENANT_SCOPES
    wrong = [scope for scope in scopes if scope not in possible]
    if wrong or not scopes:
        whose = "an operator's key" if tenant is None else "a tenant's key"
        got = repr(wrong[0][:40]) if wrong else "none"
        raise ConfigError(f"the scopes of {whose} are some of {', '.join(possible)}, got {got}")
    return tuple(scope for scope in possible if scope in scopes)


def _to_record(row: Mapping[Any, Any]) -> KeyRecord:
    values = {name: row[name] for name in KeyRecord.__struct_fields__}
    values["scopes"] = msgspec.json.decode(row["scopes"], type=tuple[str, ...])
    return KeyRecord(**values)
