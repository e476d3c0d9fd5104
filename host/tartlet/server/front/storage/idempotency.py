"""Idempotency keys: a request that a client sends twice, because it has heard nothing, starts one run."""

from __future__ import annotations

import re

import msgspec
from sqlalchemy import Connection, delete, select

from tartlet.errors import ConfigError, ConflictError
from tartlet.server.front.storage import tables
from tartlet.server.front.storage.database import Database

LIFETIME_MS = 24 * 3_600_000
"""How long a key is remembered."""

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_table = tables.idempotency


class Claim(msgspec.Struct, frozen=True):
    """What a client says so that its request counts once."""

    key: str
    """Chosen by the client: 1 to 255 visible ASCII characters."""
    request_hash: str
    """SHA-256 of everything that makes the request what it is, in hexadecimal."""


class Idempotency:
    """The idempotency keys of a database. They are claimed by `Runs.start`, in one transaction with the run."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, tenant: str, claim: Claim) -> str | None:
        """The run that was started with this key; None: none. Raises ConfigError, ConflictError as `Runs.start`."""
        _check(claim)
        now_ms = self._database.now_ms()
        return await self._database.read(lambda connection: _find(connection, tenant, claim, now_ms))

    async def sweep(self) -> int:
        """Forget keys that have expired, and return how many."""
        statement = delete(_table).where(_table.c.expires_ms <= self._database.now_ms())

        def work(connection: Connection) -> int:
            return connection.execute(statement).rowcount

        return await self._database.write(work)


def claim_key(database: Database, connection: Connection, tenant: str, claim: Claim, run_id: str) -> str | None:
    """Claim a key for a run, in a transaction that holds the tenant.

    Returns the run that has it already, or None: it is this run's now.

    Raises:
        ConfigError: That cannot be a key.
        ConflictError: The key was used for another request.
    """
    _check(claim)
    now_ms = database.now_ms()
    earlier = _find(connection, tenant, claim, now_ms)
    if earlier is not None:
        return earlier
    changed = {"request_hash": claim.request_hash, "run_id": run_id, "expires_ms": now_ms + LIFETIME_MS}
    insert = database.insert(_table).values({"tenant": tenant, "key": claim.key, **changed})
    connection.execute(insert.on_conflict_do_update(index_elements=["tenant", "key"], set_=changed))
    return None


def _find(connection: Connection, tenant: str, claim: Claim, now_ms: int) -> str | None:
    mine = (_table.c.tenant == tenant, _table.c.key == claim.key, _table.c.expires_ms > now_ms)
    row = connection.execute(select(_table.c.request_hash, _table.c.run_id).where(*mine)).first()
    if row is None:
        return None
    if row.request_hash != claim.request_hash:
        raise ConflictError(
            f"the idempotency key {claim.key!r} was used for another request",
            hint="Use a new key for each request, and the same only to send it again.",
            code="idempotency_conflict",
        )
    return str(row.run_id)


def _check(claim: Claim) -> None:
    if not _KEY.fullmatch(claim.key):
        raise ConfigError("an idempotency key has 1 to 255 visible ASCII characters")
