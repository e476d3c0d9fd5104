"""Accounts of runs: shared pages count once, limits say what was used and allowed."""

from __future__ import annotations

import pytest

from tartlet_engine.accounts import RunAccount, RunLimitError


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
