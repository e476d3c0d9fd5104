"""Runs: that they were started, and how they ended. What is written here, the front's death does not undo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec
from sqlalchemy import Connection, bindparam, delete, select, tuple_, update
from sqlalchemy.engine import RowMapping

from tartlet.errors import NotFoundError
from tartlet.events import RunUsage
from tartlet.server.failures import Failure
from tartlet.server.front.storage import tables
from tartlet.server.front.storage.database import Database
from tartlet.server.front.storage.idempotency import Claim, claim_key
from tartlet.server.front.storage.tenants import lock_tenant
from tartlet.server.front.storage.usage import add_usage

MOST_RESULT_BYTES = 64 * 1024
"""Of a result that is kept; of a larger one only its size is."""
MOST_MESSAGE_CHARS = 16 * 1024
"""Of a failure's message that are kept."""

State = Literal["running", "succeeded", "failed", "cancelled"]
END_STATES: tuple[State, ...] = ("succeeded", "failed", "cancelled")

LOST = Failure(
    "WorkerLostError",
    "worker_lost",
    "the server was stopped before the run had ended",
    "Start it again.",
)
"""How a run ended whose front has died."""

_RUN_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_runs = tables.runs


class RunRecord(msgspec.Struct, frozen=True):
    """A run."""

    run_id: str
    tenant: str
    digest: str
    """Of the inferlet, which may have been deleted."""
    name: str
    """What the inferlet was called when the run was started."""
    state: State
    started_ms: int
    ended_ms: int | None = None
    failure: Failure | None = None
    result_json: str | None = None
    """None: there is none, or it is not kept."""
    note: str = ""
    """Why the result of a run that succeeded is not kept."""
    usage: RunUsage | None = None


class EndedRun(msgspec.Struct, frozen=True):
    """The end of a run, ready to be written; what is too long has been cut."""

    run_id: str
    usage: RunUsage
    values: dict[str, object]
    """Of its row."""
    frees_key: bool = False
    """Its idempotency key is forgotten: the same request may start another run."""


class Runs:
    """The runs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def now_ms(self) -> int:
        """The time by which runs start and end."""
        return self._database.now_ms()

    async def start(
        self,
        run_id: str,
        tenant: str,
        digest: str,
        name: str,
        *,
        started_ms: int | None = None,
        claim: Claim | None = None,
    ) -> str:
        """Note that a run starts. With a claim, the earlier run of the same request may take its place.

        Returns: The id of the run that counts: `run_id`, or that of the earlier run; then nothing has been noted.

        Raises:
            NotFoundError: There is no such tenant.
            ConfigError: The claim's key cannot be one.
            ConflictError: It was used for another request.
        """
        values: dict[str, object] = {"run_id": run_id, "tenant": tenant, "digest": digest, "name": name, "note": ""}
        values |= {"state": "running", "started_ms": self._database.now_ms() if started_ms is None else started_ms}

        def work(connection: Connection) -> str:
            lock_tenant(connection, tenant)
            if claim is not None:
                earlier = claim_key(self._database, connection, tenant, claim, run_id)
                if earlier is not None:
                    return earlier
            connection.execute(self._database.insert(_runs).values(values))
            return run_id

        # A run that has not ended has no end worth a wait for the disk; a claim has: it must not start another.
        return await self._database.write(work, is_lazy=claim is None)

    async def end(
        self,
        run_id: str,
        state: State,
        *,
        usage: RunUsage,
        result_json: str | None = None,
        failure: Failure | None = None,
        frees_key: bool = False,
    ) -> bool:
        """Write down how a run ended, and what it used in the ledger, at once. Both are on disk when this returns.

        Args:
            run_id: Of the run.
            state: How it ended.
            usage: What it used.
            result_json: What it returned.
            failure: Why it returned nothing.
            frees_key: Its idempotency key is forgotten with that: the client may try again.

        Returns: Whether the run was going on; otherwise nothing is changed, so that nothing is counted twice.
        """
        ended = self.ended(run_id, state, usage=usage, result_json=result_json, failure=failure, frees_key=frees_key)
        return await self.write_end(ended)

    def ended(
        self,
        run_id: str,
        state: State,
        *,
        usage: RunUsage,
        result_json: str | None,
        failure: Failure | None,
        frees_key: bool,
    ) -> EndedRun:
        """What `write_end` writes of a run that ends now."""
        values: dict[str, object] = {"state": state, "ended_ms": self._database.now_ms()}
        values["usage"] = msgspec.json.encode(usage).decode()
        if failure is not None:
            short = msgspec.structs.replace(failure, message=failure.message[:MOST_MESSAGE_CHARS])
            values["failure"] = msgspec.json.encode(short).decode()
        if result_json is not None:
            values |= _kept_result(result_json)
        return EndedRun(run_id, usage, values, frees_key)

    async def write_end(self, ended: EndedRun) -> bool:
        """As `end`."""
        return await self._database.write(lambda connection: self._end(connection, ended))

    async def note_usages(self, usages: Mapping[str, RunUsage]) -> None:
        """Note what runs that go on have used so far, by their ids: it counts if they have no other end.

        It survives this process, but need not survive a power cut.
        """
        changed = update(_runs).where(_runs.c.run_id == bindparam("id"), _runs.c.state == "running")
        changed = changed.values(usage=bindparam("used"))
        rows = [{"id": run_id, "used": msgspec.json.encode(usage).decode()} for run_id, usage in usages.items()]
        await self._database.write(lambda connection: connection.execute(changed, rows), is_lazy=True)

    async def end_all_lost(self, failure: Failure = LOST) -> int:
        """Give an end to all runs that have none: the front that had them is gone. Returns how many there were.

        What they used is what was noted last. Their idempotency keys are forgotten, so that the same request may start
        them anew. Only one front may use a database at a time.
        """
        values = {
            "state": "failed",
            "ended_ms": self._database.now_ms(),
            "failure": msgspec.json.encode(failure).decode(),
        }

        def work(connection: Connection) -> int:
            is_lost = _runs.c.state == "running"
            lost = select(_runs.c.run_id).where(is_lost)
            rows = connection.execute(select(_runs.c.run_id, _runs.c.usage).where(is_lost)).all()
            connection.execute(delete(tables.idempotency).where(tables.idempotency.c.run_id.in_(lost)))
            for run_id, used in rows:
                self._end(connection, EndedRun(run_id, _to_usage(used) or RunUsage(), values))
            return len(rows)

        return await self._database.write(work)

    async def get(self, tenant: str, run_id: str) -> RunRecord:
        """One run. Raises NotFoundError."""
        statement = select(_runs).where(_runs.c.tenant == tenant, _runs.c.run_id == run_id)
        rows = await self._database.rows(statement) if _RUN_ID.fullmatch(run_id) else []
        if not rows:
            raise NotFoundError(f"there is no run {run_id[:100]!r}")
        return _to_record(rows[0])

    async def list(
        self, tenant: str, *, state: State | None = None, limit: int = 100, after: RunRecord | None = None
    ) -> list[RunRecord]:
        """The runs of a tenant, the newest first, at most `limit`, of those that come after one of them."""
        columns = (_runs.c.started_ms, _runs.c.run_id)
        statement = select(_runs).where(_runs.c.tenant == tenant)
        if state is not None:
            statement = statement.where(_runs.c.state == state)
        if after is not None:
            statement = statement.where(tuple_(*columns) < tuple_(after.started_ms, after.run_id))
        statement = statement.order_by(*(column.desc() for column in columns)).limit(limit)
        return [_to_record(row) for row in await self._database.rows(statement)]

    async def forget(self, before_ms: int) -> int:
        """Delete runs that ended before that time; the ledger stays. Returns how many."""
        statement = delete(_runs).where(_runs.c.state.in_(END_STATES), _runs.c.ended_ms < before_ms)

        def work(connection: Connection) -> int:
            return connection.execute(statement).rowcount

        return await self._database.write(work)

    def _end(self, connection: Connection, ended: EndedRun) -> bool:
        going_on = (_runs.c.run_id == ended.run_id, _runs.c.state == "running")
        statement = update(_runs).where(*going_on).values(ended.values).returning(_runs.c.tenant, _runs.c.ended_ms)
        row = connection.execute(statement).first()
        if row is None:
            return False
        if ended.frees_key:
            keys = tables.idempotency
            freed = delete(keys).where(keys.c.tenant == row.tenant, keys.c.run_id == ended.run_id)
            connection.execute(freed)
        has_failed = ended.values["state"] != "succeeded"
        add_usage(self._database, connection, row.tenant, row.ended_ms, ended.usage, has_failed=has_failed)
        return True


def _kept_result(result_json: str) -> dict[str, object]:
    data = result_json.encode("utf-8", "backslashreplace")  # a lone surrogate becomes JSON's own escape of it
    if len(data) > MOST_RESULT_BYTES:
        return {"note": f"the result has {len(data):,} bytes, and up to {MOST_RESULT_BYTES:,} are kept"}
    return {"result_json": data.decode()}


def _to_record(row: RowMapping) -> RunRecord:
    values = dict(row)
    values["failure"] = None if row["failure"] is None else msgspec.json.decode(row["failure"], type=Failure)
    values["usage"] = _to_usage(row["usage"])
    return RunRecord(**values)


def _to_usage(text: str | None) -> RunUsage | None:
    return None if text is None else msgspec.json.decode(text, type=RunUsage)
