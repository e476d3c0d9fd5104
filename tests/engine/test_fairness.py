"""Fair shares: what is charged, who is lifted, and the bound of what one tenant can get more than another."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import Chunk, ErrorCode, Finished, OpenRun
from tartlet_engine.fairness import DECODE_COST, PREFILL_COST, SLOT_STEP_COST, FairShares, TenantShare

BUDGET = 32


def test_pages_are_charged_by_the_step_and_count_once() -> None:
    """A page that two runs of a tenant hold is charged once a step; another tenant that holds it, is charged too."""
    shares = FairShares(page_size=16)
    acme, other = shares.open_run("acme", 1.0), shares.open_run("other", 2.0)
    runs = [RunAccount(number, "", None, None, share) for number, share in enumerate((acme, acme, other))]
    for run in runs:
        run.hold([3, 4])
        run.hold([4])
    shares.end_step([], [])
    runs[0].drop([3, 4, 4])
    shares.end_step([], [])
    runs[1].drop([3, 4])
    shares.end_step([], [])

    page_cost = 16 * SLOT_STEP_COST
    assert acme.counter == pytest.approx(5 * page_cost)  # page 4 is held to the end
    assert other.counter == pytest.approx(6 * page_cost / 2)
    acme.check_integrity(run.pool_page_ids for run in runs[:2])


def test_idle_time_is_not_saved_up() -> None:
    """A tenant that comes back starts where the least charged of those that stand back is, not where it stopped."""
    shares = FairShares(page_size=16)
    busy, lazy = shares.open_run("busy", 1.0), shares.open_run("lazy", 1.0)
    for _ in range(10):
        shares.begin_step([busy])
        busy.charge(100.0)
        shares.end_step([busy], [busy])
    shares.begin_step([busy, lazy])

    assert busy.counter == lazy.counter == 1000.0


def test_who_stands_back_keeps_its_claim() -> None:
    """A tenant that is behind and could not go on is not lifted: it goes first until it has caught up."""
    shares = FairShares(page_size=16)
    ahead, behind = shares.open_run("ahead", 1.0), shares.open_run("behind", 1.0)
    ahead.charge(50.0)
    shares.end_step([ahead, behind], [ahead, behind])
    shares.begin_step([ahead, behind])

    assert (ahead.counter, behind.counter) == (50.0, 0.0)


def test_what_nobody_else_wanted_is_not_held_against_anyone() -> None:
    """As long as all get all they ask for, nobody gets a claim for what another took meanwhile."""
    shares = FairShares(page_size=16)
    heavy, light = shares.open_run("heavy", 1.0), shares.open_run("light", 1.0)
    shares.begin_step([heavy, light])
    heavy.charge(500.0)
    light.charge(2.0)
    shares.end_step([heavy, light], [])
    shares.begin_step([heavy, light])

    assert heavy.counter == light.counter == 500.0


def test_a_tenant_without_runs_is_forgotten_when_it_does_not_matter() -> None:
    """Closing all runs and opening new ones does not clear what was charged; who is at the floor needs no memory."""
    shares = FairShares(page_size=16)
    flood, other = shares.open_run("flood", 1.0), shares.open_run("other", 1.0)
    flood.charge(900.0)
    other.charge(10.0)
    shares.end_step([flood, other], [flood, other])
    shares.close_run(flood)
    assert shares.open_run("flood", 1.0).counter == 900.0
    shares.close_run(other)

    assert list(shares.tenants) == ["flood"]
    shares.check_integrity()


def test_a_tenant_has_one_weight_the_newest() -> None:
    """The weight of the newest run holds for all runs of the tenant."""
    shares = FairShares(page_size=16)
    share = shares.open_run("acme", 1.0)
    assert shares.open_run("acme", 4.0) is share
    share.charge(8.0)

    assert share.counter == 2.0


@pytest.mark.parametrize("weight", [0.0, -1.0, 5e-324, 1e-4, 1e4, float("nan"), float("inf")])
def test_a_weight_that_is_no_share_is_refused(hash_engine: Any, weight: float) -> None:
    """A run with a weight that is no number, or would spoil the counters of all tenants, is not opened."""
    driver = hash_engine()
    driver.do(OpenRun(77, weight=weight))

    assert driver.failure(77).code == ErrorCode.INVALID_ARGUMENT
    assert driver.core.stats().runs == 0


def test_what_is_used_is_charged(hash_engine: Any) -> None:
    """A generation costs its prompt, its tokens and its pages' time; a fork costs what it computes."""
    driver = hash_engine(num_pages=100, page_size=4)
    run_id = driver.open_run(tenant="acme")
    context = driver.create(run_id, range(22))
    driver.generate(context, max_tokens=5)
    driver.settle()
    share = driver.core._shares.tenants["acme"]
    tokens = 22 * PREFILL_COST + 5 * DECODE_COST
    held = SLOT_STEP_COST * 4 * (6 + 6 + 6 + 7 + 7)  # five steps
    assert share.counter == pytest.approx(tokens + held)
    driver.generate(driver.fork(context, 26), max_tokens=1)
    before = share.counter
    driver.settle()

    assert share.counter - before == pytest.approx(1 * PREFILL_COST + DECODE_COST + SLOT_STEP_COST * 4 * 8)


class Flood:
    """A tenant that always has more to do than it gets: so many contexts, a new one whenever one has ended."""

    def __init__(self, driver: Any, tenant: str, weight: float, prompts: list[int], num_tokens: list[int]) -> None:
        self.driver = driver
        self.prompts = prompts
        self.num_tokens = num_tokens
        self.weight = weight
        self.run_id = driver.open_run(tenant=tenant, weight=weight)
        self.share: TenantShare = driver.core._shares.tenants[tenant]
        self.number = 0
        self.open: dict[int, int] = {}  # generation -> context

    def fill_up(self, count: int) -> None:
        while len(self.open) < count:
            self.number += 1
            length = self.prompts[self.number % len(self.prompts)]
            context = self.driver.create(self.run_id, [(self.number * 7 + i) % 500 for i in range(length)])
            max_tokens = self.num_tokens[self.number % len(self.num_tokens)]
            self.open[self.driver.generate(context, max_tokens=max_tokens)] = context

    def clear(self, ended: set[int]) -> None:
        for generation_id in ended & set(self.open):
            self.driver.free(self.open.pop(generation_id))


def test_backlogged_tenants_get_the_same(hash_engine: Any) -> None:
    """Whatever their requests look like, over any interval no tenant gets more than 2 U above another, by weight.

    U is the greater of what a step's prefill and a step's decodes cost. Source: the bound of VTC, with U of one step.
    """
    lengths = st.lists(st.integers(1, 90), min_size=1, max_size=4)
    counts = st.lists(st.integers(1, 30), min_size=1, max_size=4)
    weights = st.sampled_from([0.5, 1.0, 2.0, 3.0])

    @settings(max_examples=25, deadline=None)
    @given(requests=st.lists(st.tuples(weights, lengths, counts), min_size=2, max_size=3))
    def check(requests: list[tuple[float, list[int], list[int]]]) -> None:
        driver = hash_engine(num_pages=8000, page_size=4, max_batch_tokens=BUDGET, context_len=200)
        tenants = [Flood(driver, f"t{number}", *request) for number, request in enumerate(requests)]
        history = []
        for _ in range(100):
            for tenant in tenants:
                tenant.fill_up(2 * BUDGET)  # more than a step takes, even if all decode
            driver.events.clear()
            driver.step()
            history.append([tenant.share.counter for tenant in tenants])
            for tenant in tenants:
                tenant.clear({event.generation_id for event in driver.events if isinstance(event, Finished)})
        bound = 2 * max(PREFILL_COST * BUDGET, DECODE_COST * BUDGET) / min(tenant.share.weight for tenant in tenants)
        for one, other in itertools.combinations(range(len(tenants)), 2):
            gaps = [row[one] - row[other] for row in history]
            assert max(gaps) - min(gaps) <= bound  # of any interval: the difference of two gaps
        for tenant in tenants:
            driver.close_run(tenant.run_id)

    check()


def test_service_is_shared_by_weight(hash_engine: Any) -> None:
    """Of two tenants that always want more, the one of weight 3 gets three times the tokens."""
    driver = hash_engine(num_pages=4000, page_size=4, max_batch_tokens=BUDGET)
    tenants = [Flood(driver, "small", 1.0, [20], [10]), Flood(driver, "large", 3.0, [20], [10])]
    tokens = [0, 0]
    for _ in range(400):
        for tenant in tenants:
            tenant.fill_up(3 * BUDGET)
        driver.events.clear()
        driver.step()
        for number, tenant in enumerate(tenants):
            chunks = [e for e in driver.events if isinstance(e, Chunk) and e.generation_id in tenant.open]
            tokens[number] += len(chunks)
            tenant.clear({event.generation_id for event in driver.events if isinstance(event, Finished)})

    assert tokens[1] / tokens[0] == pytest.approx(3.0, rel=0.05)


def test_a_long_prompt_delays_decodes_by_no_step(hash_engine: Any) -> None:
    """Beside another tenant's long prompt, and beside one of the same tenant, each decode takes part in every step."""
    driver = hash_engine(num_pages=4000, page_size=4, max_batch_tokens=BUDGET, context_len=2000)
    polite, rude = driver.open_run(tenant="polite"), driver.open_run(tenant="rude")
    generations = [driver.generate(driver.create(polite, [5, base]), max_tokens=60) for base in range(8)]
    driver.step(2)
    for run_id in (rude, polite):
        driver.flush(driver.create(run_id, [i % 500 for i in range(1500)]))
    for _ in range(50):
        before = [len(driver.tokens(generation)) for generation in generations]
        driver.step()
        assert [len(driver.tokens(generation)) for generation in generations] == [count + 1 for count in before]
        assert driver.runner.batch_sizes[-1] == BUDGET


def test_a_flood_does_not_hold_up_polite_tenants(hash_engine: Any) -> None:
    """Beside a tenant with a hundred requests in line, three polite ones wait at most twice the steps as alone."""

    def first_token_steps(with_flood: bool) -> list[int]:
        driver = hash_engine(num_pages=8000, page_size=4, max_batch_tokens=BUDGET)
        flood = Flood(driver, "flood", 1.0, [90, 40], [30])
        runs = [driver.open_run(tenant=f"polite{i}") for i in range(3)]
        waits = []
        for _ in range(6):
            generations = [driver.generate(driver.create(run, range(40)), max_tokens=5) for run in runs]
            firsts: dict[int, int] = {}
            for step in range(60):
                if with_flood:
                    flood.fill_up(100)
                driver.events.clear()
                if driver.core.has_work:
                    driver.step()
                flood.clear({event.generation_id for event in driver.events if isinstance(event, Finished)})
                for event in driver.events:
                    if isinstance(event, Chunk) and event.generation_id in generations:
                        firsts.setdefault(event.generation_id, step + 1)
            waits += [firsts[generation] for generation in generations]
        return waits

    assert max(first_token_steps(with_flood=True)) <= 2 * max(first_token_steps(with_flood=False))
