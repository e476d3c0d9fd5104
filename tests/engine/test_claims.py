"""Claims on pages: who may take from whom."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet_engine.accounts import RunAccount
from tartlet_engine.claims import Claims
from tartlet_engine.fairness import TenantShare
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence

NUM_PAGES, BUDGET = 100, 50
TURN = 2.0 * BUDGET


class Tenants:
    """Sequences of some tenants over a pool of a hundred pages."""

    def __init__(self) -> None:
        self.pool = PagePool(NUM_PAGES, page_size=4)
        self.orders = itertools.count()
        self.shares: dict[str, TenantShare] = {}
        self.sequences: list[Sequence] = []

    def add(self, tenant: str, num_pages: int, counter: float = 0.0, weight: float = 1.0) -> Sequence:
        share = self.shares.setdefault(tenant, TenantShare(tenant, weight))
        share.counter = counter
        account = RunAccount(1, tenant, None, None, share)
        order = next(self.orders)
        sequence = Sequence(order, account, PageTable(self.pool, account), list(range(400)), demand_order=order)
        sequence.page_table.reserve(0, 4 * num_pages)
        self.sequences.append(sequence)
        return sequence

    def claims(self) -> Claims:
        return Claims(self.sequences, NUM_PAGES, BUDGET)


def test_within_a_tenant_age_decides() -> None:
    """The older may take from the younger, and never the other way round."""
    tenants = Tenants()
    first, second, third = (tenants.add("local", 5) for _ in range(3))
    claims = tenants.claims()

    assert claims.may_take(first, 1, second)
    assert claims.may_take(second, 50, third)
    assert not claims.may_take(third, 1, second)


def test_within_its_share_a_tenant_takes_from_one_that_exceeds_its_own() -> None:
    """By weight: of a hundred pages a tenant of weight 3 has 75 beside one of weight 1, whatever was charged."""
    tenants = Tenants()
    oldest, flood = tenants.add("flood", 20), tenants.add("flood", 20)
    heavy = tenants.add("heavy", 30, counter=9.0, weight=3.0)
    claims = tenants.claims()

    assert claims.may_take(heavy, 45, flood)
    assert not claims.may_take(heavy, 46, flood)
    assert not claims.may_take(flood, 1, heavy)
    assert not claims.may_take(heavy, 1, oldest)  # the strongest: the oldest of the least charged


def test_where_shares_are_too_small_tenants_take_turns() -> None:
    """The oldest of a tenant may take from one that has been charged a step's budget more."""
    tenants = Tenants()
    running = tenants.add("running", 60, counter=TURN)
    waiting, second = tenants.add("waiting", 0), tenants.add("waiting", 0)
    assert not tenants.claims().may_take(waiting, 60, running)
    tenants.shares["running"].counter = TURN + 1
    claims = tenants.claims()

    assert claims.may_take(waiting, 60, running)
    assert not claims.may_take(second, 60, running)


def test_of_those_that_wait_beyond_their_shares_the_older_takes() -> None:
    """Whoever's they are; but nothing is taken so from one that goes on, nor from a tenant within its share."""
    tenants = Tenants()
    first, second, third = (tenants.add(tenant, 30) for tenant in "abc")
    polite = tenants.add("polite", 5)
    for sequence in (second, third, polite):
        sequence.is_waiting = True
    claims = tenants.claims()

    assert claims.may_take(second, 1, third)
    assert not claims.may_take(third, 1, second)
    assert not claims.may_take(second, 1, polite)
    third.is_waiting = False
    assert not claims.may_take(second, 1, third)
    assert not claims.may_take(second, 1, first)  # the strongest


def test_nothing_is_taken_from_who_has_just_come() -> None:
    """One that has not got any further since it came to its pages keeps them."""
    tenants = Tenants()
    old, young = tenants.add("local", 5), tenants.add("local", 5)
    young.is_fresh = True

    assert not tenants.claims().may_take(old, 1, young)


def test_the_weakest_is_the_youngest_of_who_holds_most() -> None:
    """By pages for their weight, then by what was charged, then by age; the strongest is the other way round."""
    tenants = Tenants()
    heavy = tenants.add("heavy", 30, counter=1.0, weight=2.0)
    old, young = tenants.add("light", 10, counter=5.0), tenants.add("light", 10, counter=5.0)
    claims = tenants.claims()

    assert claims.by_weakness(tenants.sequences) == [young, old, heavy]
    assert claims.by_strength(tenants.sequences) == [heavy, old, young]


@given(
    entries=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.floats(0, 500), st.booleans()), min_size=2, max_size=5
    ),
    num_pages=st.integers(1, 30),
)
def test_something_always_goes_on(entries: list[tuple[str, int, float, bool]], num_pages: int) -> None:
    """Whatever is held and charged: from the strongest of all nothing can be taken."""
    tenants = Tenants()
    for tenant, pages, counter, is_fresh in entries:
        tenants.add(tenant, pages, counter).is_fresh = is_fresh
    claims = tenants.claims()
    strongest = claims.by_strength(tenants.sequences)[0]

    assert not any(claims.may_take(s, num_pages, strongest) for s in tenants.sequences if s is not strongest)


@pytest.mark.parametrize("num_pages", [1, 20])
def test_nothing_goes_back_and_forth(num_pages: int) -> None:
    """Between tenants that are charged about the same, who has just given cannot take back."""
    tenants = Tenants()
    tenants.add("first", 10)
    flood, polite = tenants.add("flood", 60), tenants.add("polite", 5)
    assert tenants.claims().may_take(polite, num_pages, flood)
    flood.page_table.truncate(0)
    polite.page_table.truncate(0)
    polite.page_table.reserve(0, 4 * (5 + num_pages))

    assert not tenants.claims().may_take(flood, 60, polite)
