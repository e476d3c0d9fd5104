"""A tenant's turns: decodes first, prompts by turns between runs, and prefill's share in a crowd."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tartlet_engine.accounts import RunAccount
from tartlet_engine.fairness import TenantShare
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Flush, Sequence
from tartlet_engine.turns import TenantTurns, sort_turns

POOL = PagePool(100, page_size=4)


def make_prompt(account: RunAccount, order: int, length: int = 10) -> Sequence:
    sequence = Sequence(order, account, PageTable(POOL, account), list(range(length)), demand_order=order)
    sequence.flushes = [Flush(order, length)]
    return sequence


def make_decode(account: RunAccount, order: int) -> Sequence:
    sequence = Sequence(order, account, PageTable(POOL, account), [1, 2], num_computed=1, demand_order=order)
    generation: Any = SimpleNamespace(num_generated=1, is_parked=False, ends_with_sampled=True)
    sequence.generation = generation
    return sequence


def take_all(turns: TenantTurns, bite: int = 1000) -> list[tuple[int, int]]:
    """Whose turn it was, and how many tokens it took."""
    left: dict[Sequence, int] = {}
    taken = []
    while (sequence := turns.choose()) is not None:
        left.setdefault(sequence, sequence.num_to_compute)
        count = min(bite, left[sequence])
        left[sequence] -= count
        turns.take(count, 1, is_last=left[sequence] == 0)
        taken.append((sequence.context_id, count))
    return taken


def test_each_tenant_has_a_line_of_its_own() -> None:
    """Sequences go to their tenant, those with nothing to compute nowhere, and these wait for nothing."""
    acme, other = (RunAccount(number, name, None, None) for number, name in enumerate(("acme", "other")))
    idle = Sequence(9, acme, PageTable(POOL, acme), is_waiting=True)
    lines = sort_turns([make_prompt(acme, 1), make_prompt(other, 2), make_decode(acme, 3), idle], 100)

    assert {turns.share.tenant: [order for order, _ in take_all(turns)] for turns in lines} == {
        "acme": [3, 1],
        "other": [2],
    }
    assert not idle.is_waiting


def test_prompts_take_turns_between_runs() -> None:
    """The first prompts of all runs come before the second of any, the run served longest ago first."""
    share = TenantShare("local")
    runs = [RunAccount(number, "local", None, None, share) for number in range(3)]
    runs[0].last_prefill_step = 5
    prompts = [make_prompt(runs[run], order) for order, run in enumerate([0, 0, 1, 2, 1])]
    (turns,) = sort_turns(prompts, 100)

    assert [order for order, _ in take_all(turns)] == [2, 3, 0, 4, 1]
    assert runs[0].last_prefill_step == 1


def test_in_a_crowd_a_quarter_goes_to_prefill() -> None:
    """When there are more decodes than three quarters of the budget, each three of them let a token of prefill pass."""
    account = RunAccount(1, "local", None, None)
    (turns,) = sort_turns([make_prompt(account, 100, 4), *(make_decode(account, order) for order in range(12))], 12)
    order = [context_id for context_id, _ in take_all(turns, bite=1)]

    assert [order[:turn].count(100) for turn in (4, 8, 12, 16)] == [1, 2, 3, 4]


def test_what_a_tenant_takes_counts_at_once() -> None:
    """The charge grows with each bite, a decode twice as fast as a prompt's token, and half as fast at weight 2."""
    account = RunAccount(1, "local", None, None, TenantShare("local", weight=2.0))
    account.share.counter = 7.0
    (turns,) = sort_turns([make_decode(account, 1), make_prompt(account, 2)], 100)
    turns.choose()
    turns.take(1, 3, is_last=True)
    assert turns.charged == 8.0
    turns.choose()
    turns.take(10, 3, is_last=True)

    assert turns.charged == 13.0
    assert account.share.last_served_step == 3
    assert not turns.is_backlogged


def test_who_is_refused_leaves_the_tenant_backlogged() -> None:
    """One that cannot take part loses its turn, and the others go on; the tenant has not got all it wanted."""
    account = RunAccount(1, "local", None, None)
    (turns,) = sort_turns([make_prompt(account, 1), make_prompt(account, 2)], 100)
    turns.choose()
    turns.put_back()

    assert [order for order, _ in take_all(turns)] == [2]
    assert turns.is_backlogged


def test_who_skips_a_step_was_not_refused_anything() -> None:
    """One that waits for what the step computes for another is no claim on the next step; one put back is."""
    share = TenantShare("a")
    account = RunAccount(1, "a", None, None, share)
    for leave, is_backlogged in ((TenantTurns.skip, False), (TenantTurns.put_back, True)):
        pool = PagePool(10, 4)
        sequence = Sequence(1, account, PageTable(pool, account), [1, 2], demand_order=1)
        turns = TenantTurns(share, [], [sequence], is_crowded=False)
        turns.choose()
        leave(turns)

        assert (turns.choose(), turns.is_backlogged) == (None, is_backlogged)
