"""Charging for what is no step: by time, in tokens, and only if others waited."""

from __future__ import annotations

from typing import Any

from tartlet_engine.costs import FixedCosts
from tartlet_engine.side_work import SideWork

PROMPT = list(range(10, 40))


def charged(driver: Any, tenant: str, seconds: float) -> float:
    """What a tenant is charged for so much work."""
    share = driver.core._shares.tenants[tenant]
    before = share.counter
    driver.core.charge(tenant, seconds)
    return float(share.counter - before)


def test_time_is_charged_as_tokens(hash_engine: Any) -> None:
    """While another tenant waits for a step: as many tokens as that time computes, divided by the tenant's weight."""
    driver = hash_engine(costs=FixedCosts(seconds_per_token=0.001))
    run = driver.open_run(tenant="busy", weight=2.0)
    driver.generate(driver.create(run, PROMPT))
    assert charged(driver, "busy", 0.5) == 0

    driver.generate(driver.create(driver.open_run(tenant="waiting"), PROMPT))
    assert charged(driver, "busy", 0.5) == 250
    assert charged(driver, "waiting", 0.5) == 500


def test_what_nobody_else_waits_for_is_free(hash_engine: Any) -> None:
    """Nor is anything charged to a tenant that is gone."""
    driver = hash_engine()
    driver.open_run(tenant="alone")
    assert charged(driver, "alone", 9.0) == 0

    driver.core.charge("nobody", 9.0)


def test_whether_somebody_waits(hash_engine: Any) -> None:
    """Demands are what is waited for; contexts alone are not."""
    driver = hash_engine()
    side_work: SideWork = driver.core._side_work
    context = driver.create(driver.open_run(), PROMPT)
    assert not side_work.is_awaited
    driver.flush(context)
    assert side_work.is_awaited
