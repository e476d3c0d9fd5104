"""Admission: pages are reserved for all of a prompt, copies keep their sources, and who has no room waits."""

from __future__ import annotations

import pytest

from tartlet_engine.accounts import RunAccount
from tartlet_engine.admission import Admission
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Flush, Sequence
from tartlet_engine.step_plan import StepPlan


@pytest.fixture
def pool() -> PagePool:
    """Six pages of four tokens."""
    return PagePool(6, page_size=4)


def make_prompt(pool: PagePool, length: int, max_pages: int | None = None) -> Sequence:
    account = RunAccount(1, "local", None, max_pages)
    sequence = Sequence(1, account, PageTable(pool, account), list(range(length)))
    sequence.flushes = [Flush(1, length)]
    return sequence


def test_all_of_a_prompt_is_reserved(pool: PagePool) -> None:
    """The pages of all chunks are there before the first is computed, and nothing can be taken from it till then."""
    sequence = make_prompt(pool, 17)
    admission = Admission(pool, None, None)

    assert admission.admit(StepPlan(), sequence, is_decode=False)
    assert len(sequence.page_table.page_ids) == 5
    assert sequence.is_fresh


def test_without_room_it_waits(pool: PagePool) -> None:
    """A prompt that does not fit beside others takes nothing and waits; when it fits, it waits no longer."""
    first, second = make_prompt(pool, 16), make_prompt(pool, 12)
    admission, plan = Admission(pool, None, None), StepPlan()
    assert admission.admit(plan, first, is_decode=False)
    assert not admission.admit(plan, second, is_decode=False)
    assert (plan.waiting, second.is_waiting, second.page_table.page_ids) == ([second], True, [])
    first.page_table.truncate(0)

    assert admission.admit(StepPlan(), second, is_decode=False)
    assert not second.is_waiting


def test_run_limits_are_reported_once(pool: PagePool) -> None:
    """A run that may not hold the pages is a breach, whoever of it asks how often."""
    sequence = make_prompt(pool, 16, max_pages=3)
    admission, plan = Admission(pool, None, None), StepPlan()

    assert not admission.admit(plan, sequence, is_decode=False)
    assert not admission.admit(plan, sequence, is_decode=False)
    assert [(breach.used, breach.allowed) for breach in plan.breaches] == [(4, 3)]
    assert plan.waiting == []


def test_the_source_of_a_copy_is_kept_until_the_step_is_over(pool: PagePool) -> None:
    """A page that is copied from belongs to nobody else before it has been copied, even if its holders go away."""
    parent = make_prompt(pool, 6)
    admission, plan = Admission(pool, None, None), StepPlan()
    admission.admit(plan, parent, is_decode=False)
    parent.num_computed = 6
    fork = make_prompt(pool, 7)
    fork.share_from(parent, 6)
    assert admission.admit(plan, fork, is_decode=False)
    (copy,) = plan.page_copies
    parent.page_table.truncate(0)
    assert pool.num_available == 6 - 2 - 1
    assert copy.source_page_id not in pool.allocate(3)
    admission.finish()

    assert pool.num_available == 1
