"""The scheduler: budgets are kept, nobody is left behind, pages are reserved for all that is planned."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tartlet_engine.accounts import RunAccount
from tartlet_engine.fairness import FairShares, TenantShare
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.scheduler import Scheduler
from tartlet_engine.sequence import Flush, Sequence
from tartlet_engine.step_plan import StepPlan


def make_prompt(pool: PagePool, account: RunAccount, order: int, length: int) -> Sequence:
    sequence = Sequence(order, account, PageTable(pool, account), list(range(length)), demand_order=order)
    sequence.flushes = [Flush(order, length)]
    return sequence


def carry_out(plan: StepPlan) -> None:
    for chunk in plan.chunks:
        chunk.sequence.num_computed = chunk.end


@given(
    lengths=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), min_size=1, max_size=12),
    budget=st.integers(1, 40),
)
def test_all_prompts_are_computed(lengths: list[tuple[int, int]], budget: int) -> None:
    """Each step stays within the budget, uses all of it while there is work, and computes tokens in order."""
    pool = PagePool(1000, page_size=4)
    accounts = [RunAccount(run_id, "local", None, None) for run_id in range(4)]
    sequences = [make_prompt(pool, accounts[run], order, length) for order, (run, length) in enumerate(lengths)]
    scheduler, step = Scheduler(pool, budget, FairShares(4)), 0
    while any(sequence.num_to_compute for sequence in sequences):
        step += 1
        left = sum(sequence.num_to_compute for sequence in sequences)
        starts = {id(sequence): sequence.num_computed for sequence in sequences}
        plan = scheduler.plan(sequences, step)
        assert plan.num_tokens == sum(chunk.num_tokens for chunk in plan.chunks) == min(budget, left)
        assert len({id(chunk.sequence) for chunk in plan.chunks}) == len(plan.chunks)
        assert all(chunk.start == starts[id(chunk.sequence)] for chunk in plan.chunks)
        assert all(len(chunk.sequence.page_table.page_ids) * 4 >= chunk.end for chunk in plan.chunks)
        carry_out(plan)

    assert step == -(-sum(length for _, length in lengths) // budget)


def test_a_long_prompt_does_not_hold_up_another_run() -> None:
    """A short prompt of another run is computed in the step after it came, not after the long one."""
    pool = PagePool(1000, page_size=4)
    share = TenantShare("local")
    long = make_prompt(pool, RunAccount(1, "local", None, None, share), 1, 1000)
    scheduler = Scheduler(pool, 50, FairShares(4))
    carry_out(scheduler.plan([long], 1))
    short = make_prompt(pool, RunAccount(2, "local", None, None, share), 2, 30)
    plan = scheduler.plan([long, short], 2)

    assert {chunk.sequence.context_id: chunk.num_tokens for chunk in plan.chunks} == {2: 30, 1: 20}


def test_prompts_of_one_run_go_in_the_order_of_arrival() -> None:
    """Within a run, the earlier prompt is finished before the later one begins."""
    pool, account = PagePool(1000, page_size=4), RunAccount(1, "local", None, None)
    prompts = [make_prompt(pool, account, order, 30) for order in (1, 2)]
    plan = Scheduler(pool, 40, FairShares(4)).plan(reversed(prompts), 1)

    assert [(chunk.sequence.context_id, chunk.num_tokens) for chunk in plan.chunks] == [(1, 30), (2, 10)]


def test_what_does_not_fit_waits_and_holds_nothing() -> None:
    """A prompt for which too few pages are free waits without taking any; a smaller one behind it goes on."""
    pool, account = PagePool(4, page_size=4), RunAccount(1, "local", None, None)
    large, small = make_prompt(pool, account, 1, 17), make_prompt(pool, account, 2, 16)
    plan = Scheduler(pool, 100, FairShares(4)).plan([large, small], 1)

    assert plan.waiting == [large]
    assert (large.is_waiting, large.page_table.page_ids) == (True, [])
    assert [chunk.sequence for chunk in plan.chunks] == [small]


def test_a_run_over_its_page_limit_is_reported_once() -> None:
    """Two sequences of a run need more pages than it may hold: one breach, and pages only as far as allowed."""
    pool, account = PagePool(100, page_size=4), RunAccount(1, "local", None, max_pages=2)
    sequences = [make_prompt(pool, account, order, 8) for order in (1, 2, 3)]
    plan = Scheduler(pool, 100, FairShares(4)).plan(sequences, 1)

    assert [(breach.limit, breach.used, breach.allowed) for breach in plan.breaches] == [("kv_pages", 4, 2)]
    assert account.num_pages == 2


def test_decodes_go_before_prefill_and_leave_it_a_share(hash_engine: Any) -> None:
    """All decodes take part in a step beside a long prompt; if they could fill it, prefill still gets its share."""
    driver = hash_engine(num_pages=500, max_batch_tokens=8, page_size=4)
    run_id = driver.open_run()
    for base in range(12):
        driver.generate(driver.create(run_id, [10 + base]), max_tokens=30)
    driver.step(3)
    driver.flush(driver.create(driver.open_run(), range(100)))
    before = driver.core.stats().prefill_tokens
    driver.step(10)

    assert driver.core.stats().prefill_tokens - before == 10 * 2
    assert set(driver.runner.batch_sizes[-10:]) == {8}
    driver.settle()
