"""The pager: pages go out once, whoever shares them, and come back with the same contents and the same holders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tartlet_engine.costs import FixedCosts
from tartlet_engine.pager import Pager

HashText = Callable[[Sequence[int], int], list[int]]
SWAP_IS_CHEAP = FixedCosts(seconds_per_byte=0.0, seconds_per_token=1.0)
COMPUTING_IS_CHEAP = FixedCosts(seconds_per_byte=1.0, seconds_per_token=0.0)


@pytest.fixture
def family(hash_engine: Any) -> Callable[..., tuple[Any, list[Any], Pager]]:
    """Make a computed context of five pages and two forks with a page of their own each."""

    def make(**settings: Any) -> tuple[Any, list[Any], Pager]:
        driver = hash_engine(num_pages=16, page_size=4, **settings)
        parent = driver.create(driver.open_run(), range(20))
        forks = [driver.fork(parent, 20) for _ in range(2)]
        for number, fork in enumerate(forks):
            driver.append(fork, [50 + number])
        for context in (parent, *forks):
            driver.flush(context)
        driver.settle()
        sequences = [driver.core._contexts.get(context) for context in (parent, *forks)]
        return driver, sequences, driver.core._preemption._pager

    return make


def test_shared_pages_leave_and_return_once(family: Any) -> None:
    """After one holder's pages went out, all have swapped pages; one comes back, and all have theirs again."""
    driver, (parent, first, second), pager = family(swap_pages=20, costs=SWAP_IS_CHEAP)
    contents = pager.read(first.page_table.page_ids)
    pager.take_out(first, 100, pinned=())
    driver.core.check_integrity()
    assert [sequence.page_table.num_swapped for sequence in (parent, first, second)] == [5, 6, 5]
    assert (driver.num_held, driver.core.stats().pages_swapped) == (1, 6)
    assert pager.read(first.page_table.page_ids).equal(contents)
    pager.bring_back(second)
    driver.core.check_integrity()

    assert [sequence.page_table.num_swapped for sequence in (parent, first, second)] == [0, 1, 0]
    assert pager.read(first.page_table.page_ids).equal(contents)
    assert first.page_table.page_ids[:5] == second.page_table.page_ids[:5] == parent.page_table.page_ids


def test_no_more_leaves_than_is_asked_for_and_nothing_pinned(family: Any) -> None:
    """The last pages go first, and those that somebody needs stay."""
    driver, (_, first, second), pager = family(swap_pages=20, costs=SWAP_IS_CHEAP)
    pager.take_out(first, 2, pinned=())
    assert first.page_table.num_swapped == 2
    pager.take_out(second, 100, pinned=set(first.page_table.page_ids))

    assert driver.num_held == 4
    assert second.page_table.num_swapped == 2  # its own, and the one that left with the first


def test_what_does_not_fit_into_the_swap_space_is_dropped(family: Any, hash_text: HashText) -> None:
    """The first pages are swapped, those after them dropped, of all who share them; tokens and results stay."""
    driver, (parent, first, second), pager = family(swap_pages=2, costs=SWAP_IS_CHEAP)
    pager.take_out(parent, 100, pinned=())
    driver.core.check_integrity()
    assert [sequence.num_computed for sequence in (parent, first, second)] == [8, 8, 8]
    assert [sequence.page_table.num_swapped for sequence in (parent, first, second)] == [2, 2, 2]
    assert driver.num_held == 0
    generations = [driver.generate(sequence.context_id, max_tokens=3) for sequence in (parent, first, second)]
    driver.settle()

    expected = [hash_text([*range(20), *more], 3) for more in ([], [50], [51])]
    assert [driver.tokens(generation) for generation in generations] == expected
    assert driver.core.stats().recomputed_tokens > 0


@pytest.mark.parametrize("swap_pages", [0, 20])
def test_a_page_becomes_its_writers_own_without_a_free_page(family: Any, hash_text: HashText, swap_pages: int) -> None:
    """The other holders get a swapped copy, or compute theirs again; the writer's has one holder."""
    driver, (parent, *_), pager = family(swap_pages=swap_pages, costs=SWAP_IS_CHEAP)
    fork = driver.core._contexts.get(driver.fork(parent.context_id, 18))
    assert not pager.part(parent, 5)  # it has no such page yet
    assert pager.part(fork, 4)
    driver.core.check_integrity()

    assert not driver.core._pool.is_shared(fork.page_table.page_ids[4])
    assert parent.num_computed == (20 if swap_pages else 16)
    driver.append(fork.context_id, [9])
    generations = [driver.generate(sequence.context_id, max_tokens=3) for sequence in (fork, parent)]
    driver.settle()
    assert driver.tokens(generations[0]) == hash_text([*range(18), 9], 3)
    assert driver.tokens(generations[1]) == hash_text(range(20), 3)


def test_pages_reserved_for_what_is_not_computed_just_go(family: Any) -> None:
    """Pages that nothing was written to are given back without a copy."""
    driver, (_, first, _), pager = family(swap_pages=20, costs=COMPUTING_IS_CHEAP)
    first.append([1] * 20)
    first.page_table.reserve(21, 41)
    pager.take_out(first, 5, pinned=())

    assert (first.num_computed, first.page_table.num_swapped) == (21, 0)
    driver.core.check_integrity()
