"""Who may start runs, on which terms, and what is written down of them, as the storage knows it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tartlet.server.front.admission import Admission, Place
from tartlet.server.front.known_tenants import KnownTenants
from tartlet.server.front.limits import limits_of
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.metrics import Metrics
from tartlet.server.front.run_events import Outcome
from tartlet.server.front.runs import EarlierRun, Terms
from tartlet.server.front.storage import Claim, Storage

logger = logging.getLogger("tartlet.runs")

SERVERS_FAULT = frozenset({"unavailable", "worker_lost", "engine_stopped"})
"""Codes of failures after which the same request may be sent again, with its idempotency key."""


class StoredPolicy:
    """Implements `RunPolicy`."""

    def __init__(self, storage: Storage, tenants: KnownTenants, admission: Admission, metrics: Metrics) -> None:
        self._storage = storage
        self._tenants = tenants
        self._admission = admission
        self._metrics = metrics
        self._places: dict[str, Place] = {}  # of runs, by id

    async def admit(self, run: LiveRun, limits: Mapping[str, int | None], claim: Claim | None) -> Terms:
        """See `RunPolicy`. Raises EarlierRun, NotFoundError, ConfigError, QuotaError."""
        if claim is not None:
            earlier = await self._storage.idempotency.find(run.tenant, claim)
            if earlier is not None:
                raise EarlierRun(earlier)
        tenant, allowed = await self._tenants.get(run.tenant)
        terms = Terms(limits_of(allowed, limits), tenant.weight)
        self._places[run.run_id] = await self._admission.enter(run.tenant, allowed)
        return terms

    async def begin(self, run: LiveRun, claim: Claim | None) -> None:
        """See `RunPolicy`. Raises EarlierRun, too."""
        counts = await self._storage.runs.start(
            run.run_id, run.tenant, run.digest, run.program, started_ms=run.created_ms, claim=claim
        )
        if counts != run.run_id:
            raise EarlierRun(counts)
        self._metrics.run_began()

    def charge(self, run: LiveRun) -> None:
        """See `RunPolicy`."""
        self._places[run.run_id].charge(run.usage_so_far.generated_tokens)

    def release(self, run: LiveRun) -> None:
        """See `RunPolicy`."""
        place = self._places.pop(run.run_id)
        place.leave(run.usage.generated_tokens if run.has_ended else None)

    async def end(self, run: LiveRun, outcome: Outcome) -> None:
        """See `RunPolicy`."""
        self._metrics.run_ended(run, outcome)
        _log(run, outcome)
        status, failure = outcome.status, outcome.failure
        assert status != "running"
        await self._storage.ends.write(
            run.run_id,
            status,
            usage=run.usage,
            result_json=outcome.result_json,
            failure=failure,
            frees_key=_may_be_sent_again(run, outcome),
        )


def _may_be_sent_again(run: LiveRun, outcome: Outcome) -> bool:
    """Whether its idempotency key is free again: who asked for it has not heard of an end, or it was the server's."""
    if outcome.status == "cancelled":
        return run.cancelled_by in ("client", "shutdown")
    return outcome.failure is not None and outcome.failure.code in SERVERS_FAULT


def _log(run: LiveRun, outcome: Outcome) -> None:
    """One line. Of a failure no message: it may hold what the program was given."""
    failure, usage = outcome.failure, run.usage
    logger.info(
        "run",
        extra={
            "run_id": run.run_id,
            "tenant": run.tenant,
            "digest": run.digest,
            "status": outcome.status,
            "code": None if failure is None else failure.code,
            "limit": None if failure is None else failure.limit,
            "used": None if failure is None else failure.used,
            "allowed": None if failure is None else failure.allowed,
            "generated_tokens": usage.generated_tokens,
            "page_seconds": round(usage.page_seconds, 3),
            "cpu_ms": round(usage.cpu_ms, 1),
            "wall_ms": round(usage.wall_ms, 1),
        },
    )
