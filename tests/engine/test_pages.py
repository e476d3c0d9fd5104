"""The page pool: every page is free or held, and nothing is lost or given twice."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tartlet_engine.pages import OutOfPagesError, PagePool

NUM_PAGES = 12


class PoolMachine(RuleBasedStateMachine):
    """Holders that take, share and release pages at will."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(NUM_PAGES, page_size=4)
        self.holders: list[list[int]] = []

    @rule(count=st.integers(0, NUM_PAGES + 2))
    def allocate(self, count: int) -> None:
        free = self.pool.num_free
        if count > free:
            with pytest.raises(OutOfPagesError) as caught:
                self.pool.allocate(count)
            assert (caught.value.need, caught.value.free) == (count, free)
            return
        page_ids = self.pool.allocate(count)
        held = {page_id for holder in self.holders for page_id in holder}
        assert len(set(page_ids)) == count
        assert not held & set(page_ids)
        self.holders.append(page_ids)

    @rule(data=st.data())
    def share(self, data: st.DataObject) -> None:
        if self.holders:
            page_ids = data.draw(st.sampled_from(self.holders))
            self.pool.share(page_ids)
            self.holders.append(list(page_ids))

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.holders:
            self.pool.release(self.holders.pop(data.draw(st.integers(0, len(self.holders) - 1))))

    @invariant()
    def adds_up(self) -> None:
        held = {page_id for holder in self.holders for page_id in holder}
        assert self.pool.num_held == len(held)
        assert self.pool.num_free == NUM_PAGES - len(held)
        for page_id in held:
            assert self.pool.is_shared(page_id) == (sum(page_id in holder for holder in self.holders) > 1)
        self.pool.check_integrity(self.holders)


TestPool = PoolMachine.TestCase


def test_integrity_notices_a_lost_page() -> None:
    """A page that no page table holds, though the pool counts a reference, is an error."""
    pool = PagePool(4, page_size=2)
    held = pool.allocate(2)

    with pytest.raises(AssertionError, match="1 references, but 0 page tables"):
        pool.check_integrity([held[:1]])


@pytest.mark.parametrize(("num_tokens", "expected"), [(0, 0), (1, 1), (4, 1), (5, 2)])
def test_pages_for(num_tokens: int, expected: int) -> None:
    """Tokens fill pages from the first slot on."""
    assert PagePool(1, page_size=4).pages_for(num_tokens) == expected
