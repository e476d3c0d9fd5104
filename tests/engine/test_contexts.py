"""Contexts: forks that wait for their parent, and what becomes of them when it changes."""

from __future__ import annotations

import pytest

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import ErrorCode
from tartlet_engine.command_error import CommandError
from tartlet_engine.contexts import ContextTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence

PARENT, CHILD, SECOND_CHILD, GRANDCHILD = 1, 2, 3, 4


@pytest.fixture
def table() -> ContextTable:
    """One context of ten tokens, of which nothing is computed."""
    made = ContextTable(PagePool(50, page_size=4), context_len=20)
    made.create(PARENT, RunAccount(1, "local", None, None))
    made.append(made.get(PARENT), tuple(range(10)))
    return made


def compute(table: ContextTable, sequence: Sequence, num_tokens: int) -> None:
    """What a step does, without a model."""
    sequence.page_table.reserve(sequence.num_computed, num_tokens)
    sequence.num_computed = num_tokens
    table.share_with_followers(sequence)


def test_a_fork_waits_for_its_prefix_only(table: ContextTable) -> None:
    """The fork shares as soon as its own tokens are computed, though the parent has more to do."""
    parent = table.get(PARENT)
    table.fork(parent, CHILD, 6)
    child = table.get(CHILD)
    assert (child.token_ids, child.num_to_compute, parent.target_len) == ([0, 1, 2, 3, 4, 5], 0, 10)
    compute(table, parent, 5)
    assert child.link is not None
    compute(table, parent, 8)

    assert child.link is None
    assert child.page_table.page_ids == parent.page_table.page_ids[:2]
    table.check_integrity()


def test_forks_of_a_stopped_run_demand_nothing(table: ContextTable) -> None:
    """Whose run has reached a limit gets its forks, but they do not let their parents be computed."""
    parent = table.get(PARENT)
    parent.account.is_stopped = True
    table.fork(parent, CHILD, 6)
    table.fork(table.get(CHILD), GRANDCHILD, 5)
    table.free(table.get(CHILD))

    assert table.active == {}
    assert table.get(GRANDCHILD).token_ids == [0, 1, 2, 3, 4]
    table.check_integrity()


def test_forks_of_forks_wait_in_a_chain(table: ContextTable) -> None:
    """A fork of a waiting fork computes nothing twice, whoever goes away."""
    parent = table.get(PARENT)
    table.fork(parent, CHILD, 10)
    child = table.get(CHILD)
    table.append(child, (50, 51))
    table.fork(child, GRANDCHILD, 12)
    child.flushes.clear()
    table.settle(child)
    table.free(child)
    grandchild = table.get(GRANDCHILD)
    assert grandchild.link is not None
    assert (grandchild.link.source, grandchild.link.prefix_len) == (parent, 10)
    compute(table, parent, 10)

    assert (grandchild.num_computed, grandchild.link) == (10, None)
    table.check_integrity()


def test_the_fork_that_needs_most_takes_the_parents_place(table: ContextTable) -> None:
    """When the parent is truncated, one fork takes over what is computed, and the other waits for that one."""
    parent = table.get(PARENT)
    table.fork(parent, CHILD, 7)
    table.fork(parent, SECOND_CHILD, 10)
    compute(table, parent, 4)
    table.truncate(parent, 2)
    child, heir = table.get(CHILD), table.get(SECOND_CHILD)

    assert (heir.link, heir.num_computed, heir.target_len) == (None, 4, 10)
    assert child.link is not None
    assert (child.link.source, child.link.prefix_len) == (heir, 7)
    table.check_integrity()


def test_truncating_a_waiting_fork(table: ContextTable) -> None:
    """It waits for less, and no longer at all if that is computed by then."""
    parent = table.get(PARENT)
    table.fork(parent, CHILD, 10)
    compute(table, parent, 4)
    child = table.get(CHILD)
    table.truncate(child, 6)
    assert child.link is not None
    table.truncate(child, 3)

    assert (child.link, child.num_computed) == (None, 3)
    table.check_integrity()


def test_refusals_change_nothing(table: ContextTable) -> None:
    """Unknown, existing, too long and out of range: each by its code."""
    parent = table.get(PARENT)
    refusals = [
        (lambda: table.get(9), ErrorCode.NOT_FOUND),
        (lambda: table.create(PARENT, parent.account), ErrorCode.ALREADY_EXISTS),
        (lambda: table.append(parent, (1,) * 11), ErrorCode.CONTEXT_OVERFLOW),
        (lambda: table.fork(parent, CHILD, 11), ErrorCode.INVALID_ARGUMENT),
        (lambda: table.truncate(parent, 11), ErrorCode.INVALID_ARGUMENT),
    ]
    for refused, code in refusals:
        with pytest.raises(CommandError) as caught:
            refused()
        assert caught.value.error.code == code

    assert list(table.sequences) == [PARENT]
    assert len(parent.token_ids) == 10
