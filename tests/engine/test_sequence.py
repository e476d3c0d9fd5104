"""A sequence: its tokens, what is computed, and what is demanded."""

from __future__ import annotations

import pytest
import torch

from tartlet_engine.accounts import RunAccount
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Flush, Sequence


@pytest.fixture
def sequence() -> Sequence:
    """Ten tokens, all computed, with logits, in pages of four."""
    pool, account = PagePool(20, page_size=4), RunAccount(1, "local", None, None)
    made = Sequence(1, account, PageTable(pool, account), list(range(10)))
    made.page_table.reserve(0, 10)
    made.num_computed = 10
    made.logits = torch.zeros(5)
    return made


def test_append_makes_logits_stale(sequence: Sequence) -> None:
    """Logits belong to the last token; appending nothing changes nothing."""
    sequence.append([])
    assert sequence.logits is not None
    sequence.append([7])

    assert sequence.logits is None
    assert (len(sequence.token_ids), sequence.num_computed) == (11, 10)


def test_truncate_gives_pages_back_and_shrinks_demands(sequence: Sequence) -> None:
    """What is dropped needs no page, is not computed, and nobody waits for it."""
    sequence.flushes = [Flush(1, 3), Flush(2, 10)]
    sequence.truncate(5)

    assert (sequence.token_ids, sequence.num_computed) == ([0, 1, 2, 3, 4], 5)
    assert len(sequence.page_table.page_ids) == 2
    assert [flush.target_len for flush in sequence.flushes] == [3, 5]
    assert sequence.logits is None
    sequence.check_integrity()


def test_demanding_logits_that_are_gone_computes_one_token(sequence: Sequence) -> None:
    """With logits there is nothing to do; without them, the last token is computed again."""
    sequence.demand_logits()
    assert sequence.num_computed == 10
    sequence.logits = None
    sequence.demand_logits()
    sequence.demand_logits()

    assert sequence.num_computed == 9


def test_a_fork_shares_pages_and_logits(sequence: Sequence) -> None:
    """A whole fork shares the logits, a shorter one only pages; what is not computed is not shared."""
    forks = []
    for length in (10, 6):
        fork = Sequence(2, sequence.account, PageTable(sequence.page_table._pool, sequence.account))
        fork.token_ids = sequence.token_ids[:length]
        fork.share_from(sequence, length)
        forks.append(fork)
    whole, short = forks

    assert whole.logits is sequence.logits
    assert (short.logits, short.num_computed, len(short.page_table.page_ids)) == (None, 6, 2)


def test_what_is_dropped_is_computed_again(sequence: Sequence) -> None:
    """Dropping a tail gives its pages and the logits back, and remembers what was computed once; tokens stay."""
    sequence.drop_tail(4)
    sequence.check_integrity()

    assert (sequence.num_computed, sequence.num_dropped, len(sequence.page_table.page_ids)) == (4, 10, 1)
    assert (sequence.token_ids, sequence.logits) == (list(range(10)), None)
    sequence.truncate(6)
    assert sequence.num_dropped == 6


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_computed", 11),
        ("token_ids", [1, 2]),
        ("flushes", [Flush(1, 11)]),
        ("num_dropped", 11),
        ("is_waiting", True),
        ("is_fresh", True),
    ],
)
def test_integrity_notices_what_does_not_fit(sequence: Sequence, field: str, value: object) -> None:
    """More computed or dropped than there is, a demand for more, or waiting for nothing, is an error."""
    sequence.check_integrity()
    setattr(sequence, field, value)

    with pytest.raises(AssertionError):
        sequence.check_integrity()
