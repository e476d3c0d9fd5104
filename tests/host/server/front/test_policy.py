from __future__ import annotations

import asyncio
import logging

import pytest

from tartlet.errors import ConfigError, GuestError, NotFoundError, QuotaError, UnavailableError
from tartlet.events import RunUsage
from tartlet.server.failures import to_failure
from tartlet.server.front.admission import Admission
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.metrics import Metrics
from tartlet.server.front.policy import StoredPolicy
from tartlet.server.front.run_events import Outcome
from tartlet.server.front.runs import EarlierRun
from tartlet.server.front.services import Services
from tartlet.server.front.storage import Claim

CLAIM = Claim("k", "h")


@pytest.fixture
def policy(services: Services) -> StoredPolicy:
    return StoredPolicy(services.storage, services.catalogue.tenants, Admission(most_runs=2), Metrics())


async def run_of(policy: StoredPolicy, outcome: Outcome, claim: Claim | None = None) -> LiveRun:
    run = LiveRun("acme", "p", "0" * 64)
    run.usage = RunUsage(generated_tokens=3, wall_ms=5)
    await policy.admit(run, {}, claim)
    await policy.begin(run, claim)
    await policy.end(run, outcome)
    policy.release(run)
    return run


async def test_a_run_is_on_record(services: Services, policy: StoredPolicy) -> None:
    """With its end, and in the ledger."""
    run = await run_of(policy, Outcome("succeeded", "[1]"))
    record = await services.storage.runs.get("acme", run.run_id)
    (day,) = await services.storage.usage.read("acme")

    assert (record.state, record.result_json, record.usage) == ("succeeded", "[1]", run.usage)
    assert (day.runs, day.generated_tokens) == (1, 3)


async def test_terms(services: Services, policy: StoredPolicy) -> None:
    """The tenant's weight, and what was asked for."""
    await services.storage.tenants.change("acme", weight=3.0)
    terms = await policy.admit(LiveRun("acme", "p", "d"), {"max_tokens": 5}, None)

    assert terms.weight == 3.0
    assert terms.limits["max_tokens"] == 5
    assert terms.limits["max_memory_bytes"] is not None
    await services.storage.tenants.change("acme", limits={"max_tokens": 4})
    with pytest.raises(ConfigError, match="at most 4"):
        await policy.admit(LiveRun("acme", "p", "d"), {"max_tokens": 5}, None)


async def test_places_are_taken_and_left(services: Services, policy: StoredPolicy) -> None:
    """A run that waits takes the place of one that has ended; one too many is refused."""
    await services.storage.tenants.change("acme", limits={"runs_at_once": 1, "queue_length": 1})
    runs = [LiveRun("acme", "p", "d") for _ in range(3)]
    await policy.admit(runs[0], {}, None)
    waiting = asyncio.create_task(policy.admit(runs[1], {}, None))
    while not policy._admission.num_waiting:
        await asyncio.sleep(0)
    with pytest.raises(QuotaError) as error:
        await policy.admit(runs[2], {}, None)
    assert error.value.code == "queue_full"
    policy.release(runs[0])
    await waiting
    policy.release(runs[1])

    assert policy._admission.num_live == 0


async def test_a_run_is_charged_while_it_goes_on(services: Services, policy: StoredPolicy) -> None:
    """So that a tenant without tokens starts no other."""
    await services.storage.tenants.change("acme", limits={"tokens_per_minute": 10})
    run = LiveRun("acme", "p", "d")
    await policy.admit(run, {}, None)
    run.usage = RunUsage(generated_tokens=20)
    policy.charge(run)
    with pytest.raises(QuotaError, match="tokens_per_minute"):
        await policy.admit(LiveRun("acme", "p", "d"), {}, None)
    policy.release(run)


async def test_a_tenant_that_is_gone(policy: StoredPolicy) -> None:
    """Its runs do not start."""
    with pytest.raises(NotFoundError):
        await policy.admit(LiveRun("nobody", "p", "d"), {}, None)


async def test_one_run_for_one_key(policy: StoredPolicy) -> None:
    """Whether the other is found before or while it begins."""
    run = await run_of(policy, Outcome("succeeded", "1"), CLAIM)
    other = LiveRun("acme", "p", "d")
    with pytest.raises(EarlierRun) as earlier:
        await policy.admit(other, {}, CLAIM)
    assert earlier.value.run_id == run.run_id
    with pytest.raises(EarlierRun):
        await policy.begin(other, CLAIM)


async def test_the_servers_own_faults_can_be_tried_again(policy: StoredPolicy) -> None:
    """With the same key; a program's failure is the answer."""
    lost = Outcome("failed", failure=to_failure(UnavailableError("nobody")))
    first = await run_of(policy, lost, CLAIM)
    second = await run_of(policy, Outcome("failed", failure=to_failure(GuestError("x"))), CLAIM)
    assert first.run_id != second.run_id
    with pytest.raises(EarlierRun):
        await run_of(policy, lost, CLAIM)


async def test_the_log_has_no_words_of_the_program(policy: StoredPolicy, caplog: pytest.LogCaptureFixture) -> None:
    """Its code and figures only."""
    caplog.set_level(logging.INFO, "tartlet.runs")
    await run_of(policy, Outcome("failed", '"secret"', to_failure(GuestError("my secret"))))
    (record,) = [record for record in caplog.records if record.name == "tartlet.runs"]

    assert (record.tenant, record.status, record.code) == ("acme", "failed", "guest_error")
    assert "secret" not in str(record.__dict__)


async def test_an_end_waits_for_a_database_that_cannot_be_used(
    services: Services, policy: StoredPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is over for its client, and on record as soon as that is possible."""

    async def fail(_: object) -> bool:
        raise UnavailableError("locked")

    with monkeypatch.context() as patched:
        patched.setattr(services.storage.runs, "write_end", fail)
        run = await run_of(policy, Outcome("succeeded", "[1]"))
        assert (await services.storage.runs.get("acme", run.run_id)).state == "running"
    await services.storage.ends.close()

    assert (await services.storage.runs.get("acme", run.run_id)).result_json == "[1]"
