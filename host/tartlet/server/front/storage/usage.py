"""The ledger: what each tenant has used, by day in UTC. An entry is written with the end of the run that it counts."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from sqlalchemy import Connection, select

from tartlet.events import RunUsage
from tartlet.server.front.storage import tables
from tartlet.server.front.storage.database import Database

_usage = tables.usage


class UsageRecord(msgspec.Struct, frozen=True):
    """What a tenant's runs that ended on a day have used, in all."""

    tenant: str
    day: str
    """As 2026-12-01, in UTC."""
    runs: int = 0
    failures: int = 0
    """Of these, runs that did not succeed: cancelled ones, too."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Of the tokens of prompts, those that were there already."""
    generated_tokens: int = 0
    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    host_calls: int = 0
    page_seconds: float = 0.0
    """Pages of the KV cache that were held, times seconds."""


class Usage:
    """The ledger of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, tenant: str | None = None, *, days: int = 30) -> list[UsageRecord]:
        """The days that have entries, the newest first, of the last `days`, today included; of a tenant or of all."""
        first = day_of(self._database.now_ms() - (days - 1) * 86_400_000)
        statement = select(_usage).where(_usage.c.day >= first).order_by(_usage.c.day.desc(), _usage.c.tenant)
        if tenant is not None:
            statement = statement.where(_usage.c.tenant == tenant)
        return [UsageRecord(**row) for row in await self._database.rows(statement)]


def add_usage(
    database: Database, connection: Connection, tenant: str, ended_ms: int, used: RunUsage, *, has_failed: bool
) -> None:
    """Add a run to the ledger, in the transaction that writes its end."""
    entry = UsageRecord(
        tenant,
        day_of(ended_ms),
        1,
        int(has_failed),
        used.prompt_tokens,
        used.cached_tokens,
        used.generated_tokens,
        used.cpu_ms,
        used.wall_ms,
        used.host_calls,
        used.page_seconds,
    )
    insert = database.insert(_usage).values(msgspec.structs.asdict(entry))
    sums = {column.name: column + insert.excluded[column.name] for column in _usage.c if not column.primary_key}
    connection.execute(insert.on_conflict_do_update(index_elements=["tenant", "day"], set_=sums))


def day_of(time_ms: int) -> str:
    """The day of a time, in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).date().isoformat()
