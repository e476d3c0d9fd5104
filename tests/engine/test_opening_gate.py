"""Openings by run: few at a time, in order, each begun once, and runs do not wait for each other."""

from __future__ import annotations

from tartlet_engine.accounts import RunAccount
from tartlet_engine.opening_gate import MAX_UNDER_WAY, OpeningGate
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence

ONE, OTHER = (RunAccount(number, "tenant", None, None) for number in (1, 2))
POOL = PagePool(4, 4)


def enter(gate: OpeningGate, begun: list[int], account: RunAccount, number: int, is_needed: bool = True) -> Sequence:
    """Ask for an opening, which notes that it has begun."""
    sequence = Sequence(number, account, PageTable(POOL, account))
    gate.enter(sequence, lambda: (begun.append(number), is_needed)[1])
    return sequence


def test_few_at_a_time_and_in_order() -> None:
    """When one is done, the next begins; another run's begin at once."""
    gate, begun = OpeningGate(), []
    sequences = [enter(gate, begun, ONE, number) for number in range(6)]
    enter(gate, begun, OTHER, 100)
    assert begun == [*range(MAX_UNDER_WAY), 100]
    assert gate.waiting == sequences[MAX_UNDER_WAY:]
    for _ in range(6):
        gate.leave(ONE)

    assert begun == [*range(MAX_UNDER_WAY), 100, *range(MAX_UNDER_WAY, 6)]
    assert gate.waiting == []


def test_what_is_not_needed_any_more_takes_no_place() -> None:
    """Thousands that were freed while they waited are passed over at once."""
    gate, begun = OpeningGate(), []
    for number in range(MAX_UNDER_WAY):
        enter(gate, begun, ONE, number)
    for number in range(5000):
        enter(gate, begun, ONE, number, is_needed=False)
    enter(gate, begun, ONE, 7777)
    gate.leave(ONE)

    assert begun[-1] == 7777
    assert len(begun) == MAX_UNDER_WAY + 5001
