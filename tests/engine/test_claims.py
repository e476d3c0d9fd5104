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
from tartlet_engine.sequence import Flush, Sequence

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
    """By weight: of a hundred pages a tenant of weight 3 has 75 beside one of weight 1, whatever a turn was charged."""
    tenants = Tenants()
    flood = tenants.add("flood", 40)
    heavy = tenants.add("heavy", 30, counter=TURN - 1, weight=3.0)
    claims = tenants.claims()

    assert claims.may_take(heavy, 45, flood)
    assert not claims.may_take(heavy, 46, flood)
    assert not claims.may_take(flood, 1, heavy)


def test_where_shares_are_too_small_tenants_take_turns() -> None:
    """The oldest of a tenant may take from one that has been charged for more whole steps."""
    tenants = Tenants()
    running = tenants.add("running", 60, counter=TURN - 1)
    waiting, second = tenants.add("waiting", 0), tenants.add("waiting", 0)
    assert not tenants.claims().may_take(waiting, 60, running)
    tenants.shares["running"].counter = TURN
    claims = tenants.claims()

    assert claims.may_take(waiting, 60, running)
    assert not claims.may_take(second, 60, running)


@pytest.mark.parametrize("num_small_pages", [20, 50])
def test_who_has_a_turn_keeps_what_it_takes_until_the_turn_is_over(num_small_pages: int) -> None:
    """Though the other is within its share of pages, and though counters cross on the way."""
    tenants = Tenants()
    small = tenants.add("small", num_small_pages, counter=TURN)
    large = tenants.add("large", 50, counter=0.5 * TURN)
    small.is_waiting = True
    for counter in (0.5 * TURN, 0.9 * TURN):
        tenants.shares["large"].counter = counter
        claims = tenants.claims()
        assert claims.may_take(large, 1, small)
        assert not claims.may_take(small, 1, large)
        assert claims.by_strength(tenants.sequences) == [large, small]
    tenants.shares["large"].counter = 2 * TURN
    claims = tenants.claims()

    assert claims.may_take(small, 1, large)
    assert not claims.may_take(large, 1, small)


def test_of_those_that_wait_beyond_their_shares_the_older_takes() -> None:
    """Whoever's they are; but nothing is taken so from one that goes on, nor from a tenant within its share."""
    tenants = Tenants()
    _, second, third = (tenants.add(tenant, 30) for tenant in "abc")
    polite = tenants.add("polite", 5)
    polite.token_ids = polite.token_ids[:20]
    polite.flushes = [Flush(1, 20)]
    for sequence in (second, third, polite):
        sequence.is_waiting = True
    claims = tenants.claims()

    assert claims.may_take(second, 1, third)
    assert not claims.may_take(third, 1, second)
    assert not claims.may_take(second, 1, polite)
    third.is_waiting = False
    assert not claims.may_take(second, 1, third)


def test_who_waits_for_more_than_its_share_does_not_hold_on_to_less() -> None:
    """What it would hold counts: it has five pages and waits for forty, where its share is thirty-three."""
    tenants = Tenants()
    older, large, polite = tenants.add("a", 40), tenants.add("b", 5), tenants.add("c", 1, counter=9 * TURN)
    large.flushes = [Flush(1, 180)]
    claims = tenants.claims()
    assert large.num_missing_pages == 40
    assert not claims.may_take(older, 1, large)
    large.is_waiting = True

    assert claims.may_take(older, 1, large)
    assert claims.may_take(polite, 1, large)  # within its share, though it is charged far more: the other does not run
    assert not claims.may_take(large, 40, older)


def test_nothing_is_taken_from_who_has_just_come() -> None:
    """One that has not got any further since it came to its pages keeps them."""
    tenants = Tenants()
    old, young = tenants.add("local", 5), tenants.add("local", 5)
    young.is_fresh = True

    assert not tenants.claims().may_take(old, 1, young)


def test_the_weakest_is_the_youngest_of_who_holds_most() -> None:
    """By pages for their weight, then by what was charged, then by age."""
    tenants = Tenants()
    heavy = tenants.add("heavy", 30, counter=1.0, weight=2.0)
    old, young = tenants.add("light", 10, counter=5.0), tenants.add("light", 10, counter=5.0)

    assert tenants.claims().by_weakness(tenants.sequences) == [young, old, heavy]


def test_the_strongest_is_the_oldest_of_who_has_had_fewest_turns() -> None:
    """What was charged within a turn does not count."""
    tenants = Tenants()
    spent = tenants.add("spent", 10, counter=TURN)
    first, second = tenants.add("first", 30, counter=0.5 * TURN), tenants.add("second", 10, counter=0.0)

    assert tenants.claims().by_strength(tenants.sequences) == [first, second, spent]


@given(
    entries=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.floats(0, 500), st.booleans(), st.booleans()),
        min_size=2,
        max_size=5,
    ),
    num_pages=st.integers(1, 30),
)
def test_nobody_who_runs_takes_and_is_taken_from(
    entries: list[tuple[str, int, float, bool, bool]], num_pages: int
) -> None:
    """Of any two that run, at most one may take from the other: pages go one way as long as turns stay as they are."""
    tenants = Tenants()
    for tenant, pages, counter, is_fresh, is_waiting in entries:
        sequence = tenants.add(tenant, pages, counter)
        sequence.is_fresh, sequence.is_waiting = is_fresh, is_waiting and not is_fresh
    claims = tenants.claims()

    for one, other in itertools.permutations(tenants.sequences, 2):
        assert not (other.is_fresh and claims.may_take(one, num_pages, other))
        if not (one.is_waiting or other.is_waiting):
            assert not (claims.may_take(one, num_pages, other) and claims.may_take(other, num_pages, one))


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
