from __future__ import annotations

from tartlet.events import RunUsage
from tartlet.server.front.storage import Storage, UsageRecord
from tartlet.server.front.storage.usage import day_of

from .conftest import Clock, outcomes


async def end(storage: Storage, run_id: str, tenant: str, state: str = "succeeded") -> bool:
    used = RunUsage(
        prompt_tokens=10,
        cached_tokens=4,
        generated_tokens=7,
        cpu_ms=1.5,
        wall_ms=20,
        host_calls=3,
        shared_pages=9,
        page_seconds=2.5,
    )
    await storage.runs.start(run_id, tenant, "d" * 64, "hello")
    return await storage.runs.end(run_id, state, usage=used)  # type: ignore[arg-type]


async def test_the_ledger_adds_up_by_tenant_and_day(storage: Storage, clock: Clock) -> None:
    """Of the day on which a run ends; what did not succeed counts as a failure."""
    await outcomes(*(end(storage, f"run-{number}", "acme") for number in range(20)))
    await end(storage, "cancelled", "acme", "cancelled")
    await end(storage, "others", "default")
    clock.seconds += 86_400
    await end(storage, "failed", "acme", "failed")

    later = UsageRecord("acme", "2027-01-16", 1, 1, 10, 4, 7, 1.5, 20, 3, 2.5)
    acme = UsageRecord("acme", "2027-01-15", 21, 1, 210, 84, 147, 31.5, 420, 63, 52.5)
    default = UsageRecord("default", "2027-01-15", 1, 0, 10, 4, 7, 1.5, 20, 3, 2.5)
    assert await storage.usage.read() == [later, acme, default]
    assert await storage.usage.read("acme") == [later, acme]
    assert await storage.usage.read("acme", days=1) == [later]
    assert await storage.usage.read("nobody") == []


def test_days_are_those_of_utc() -> None:
    """A day begins at midnight there, whatever the server's time zone."""
    midnight_ms = 1_799_971_200_000

    assert (day_of(midnight_ms - 1), day_of(midnight_ms)) == ("2027-01-14", "2027-01-15")
