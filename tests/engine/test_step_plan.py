"""Step plans: what a sequence is given adds up to one chunk."""

from __future__ import annotations

from tartlet_engine.accounts import RunAccount
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_plan import Chunk, StepPlan


def test_bites_of_a_sequence_are_one_chunk() -> None:
    """Tokens given in several bites are consecutive, from the first that is not computed; the last wants logits."""
    account = RunAccount(1, "local", None, None)
    table = PageTable(PagePool(9, page_size=4), account)
    first, second = Sequence(1, account, table, list(range(10)), 3), Sequence(2, account, table, list(range(9)))
    plan = StepPlan()
    plan.add(first, 4)
    plan.add(second, 5)
    plan.add(first, 3)

    assert plan.chunks == [Chunk(first, 3, 7), Chunk(second, 0, 5)]
    assert [chunk.end for chunk in plan.chunks] == [10, 5]
    assert [list(chunk.logit_slots) for chunk in plan.chunks] == [[9], []]
    assert plan.num_tokens == 12
