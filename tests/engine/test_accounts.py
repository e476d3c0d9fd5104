"""Accounts of runs: shared pages count once, limits say what was used and allowed."""

from __future__ import annotations

import pytest

from tartlet_engine import page_time
from tartlet_engine.accounts import RunAccount, RunLimitError
from tartlet_engine.api import PagesHeld
from tartlet_engine.swap import FIRST_SWAPPED_ID


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time in nanoseconds, which the test lets pass."""
    now = [1000]
    monkeypatch.setattr(page_time.time, "monotonic_ns", lambda: now[0])
    return now


def test_a_shared_page_counts_once() -> None:
    """Two page tables of a run that hold the same page use one page, until both have dropped it."""
    account = RunAccount(1, "local", None, None)
    account.hold([7, 8])
    account.hold([7])
    counts = [account.num_pages]
    account.drop([7, 8])
    counts.append(account.num_pages)
    account.drop([7])
    counts.append(account.num_pages)

    assert counts == [2, 1, 0]


def test_the_time_of_pages_is_that_of_distinct_ones_in_the_pool(clock: list[int]) -> None:
    """Two page tables with the same page hold one; a page that is swapped holds nothing of the cache meanwhile."""
    changed: dict[RunAccount, None] = {}
    account = RunAccount(1, "local", None, None, changed=changed)
    swapped = FIRST_SWAPPED_ID
    account.hold([7, 8])
    clock[0] += 10
    account.hold([7])
    clock[0] += 10
    account.hold([swapped])  # page 8 moves out
    account.drop([8])
    told = account.pages_held()
    clock[0] += 100
    account.drop([7, swapped])
    account.drop([7])

    assert told == PagesHeld(1, 1, 40, 1020)
    assert account.pages_held() == PagesHeld(1, 0, 140, 1120)
    assert list(changed) == [account]


def test_limits_allow_exactly_what_they_say() -> None:
    """The last page and token allowed are granted; one more is refused with the numbers."""
    account = RunAccount(1, "local", max_generated_tokens=3, max_pages=2)
    account.hold([5])
    account.num_generated_tokens = 2
    account.require_pages(1)
    account.require_token()
    account.num_generated_tokens = 3

    with pytest.raises(RunLimitError) as pages:
        account.require_pages(2)
    with pytest.raises(RunLimitError) as tokens:
        account.require_token()
    assert (pages.value.limit, pages.value.used, pages.value.allowed) == ("kv_pages", 3, 2)
    assert (tokens.value.limit, tokens.value.used, tokens.value.allowed) == ("generated_tokens", 4, 3)


def test_integrity_compares_with_page_tables() -> None:
    """A page table that the account does not know of is an error."""
    account = RunAccount(1, "local", None, None)
    account.hold([1])

    account.check_integrity([[1]])
    with pytest.raises(AssertionError, match="run 1"):
        account.check_integrity([[1], [2]])


def test_an_exchange_counts_what_it_gives_back() -> None:
    """Pages that the run holds already cost nothing, and those that nothing else of it holds come free."""
    account = RunAccount(1, "local", None, max_pages=3)
    account.hold([1, 2, 3])
    account.hold([2])
    account.require_exchange(held=[2, 4], dropped=[3])
    account.require_exchange(held=[1, 2, 3], dropped=[])

    with pytest.raises(RunLimitError) as caught:
        account.require_exchange(held=[4], dropped=[2])
    assert (caught.value.used, caught.value.allowed) == (4, 3)
