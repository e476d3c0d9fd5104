"""The page pool: every page is free, cached or held, and nothing is lost, given twice, or found when it is gone."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tartlet_engine.pages import OutOfPagesError, PagePool

NUM_PAGES = 12


class PoolMachine(RuleBasedStateMachine):
    """Holders that take, share, index, find and release chains of pages at will."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(NUM_PAGES, page_size=4)
        self.holders: list[list[int]] = []
        self.contents: list[bytes] = [b""] * NUM_PAGES  # what was written into each page when it was allocated
        self.last_use: dict[int, int] = {}  # of pages without a holder
        self.chains: list[list[bytes]] = []  # of contents that were indexed once, whether they still are or not
        self.num_writes = 0

    @rule(count=st.integers(0, NUM_PAGES + 2), data=st.data())
    def allocate(self, count: int, data: st.DataObject) -> None:
        """A chain of fresh pages, or a fresh tail of an indexed chain that somebody holds."""
        prefixes = [holder for holder in self.holders if holder and all(p in self.pool.index for p in holder)]
        prefix = data.draw(st.sampled_from([[], *prefixes]))
        free, available = self.pool.num_free, self.pool.num_available
        cached = [p for p in range(NUM_PAGES) if p in self.pool.index and p not in self.held]
        if count > available:
            with pytest.raises(OutOfPagesError) as caught:
                self.pool.allocate(count)
            assert (caught.value.need, caught.value.available) == (count, available)
            return
        page_ids = self.pool.allocate(count)
        assert len(set(page_ids)) == count
        assert not self.held & set(page_ids)
        dropped = [page_id for page_id in cached if page_id not in self.pool.index]
        kept = [page_id for page_id in cached if page_id in self.pool.index]
        assert len(dropped) == max(0, count - free)
        assert all(self.last_use[old] <= self.last_use[new] for old in dropped for new in kept)
        for page_id in page_ids:
            self.num_writes += 1
            self.contents[page_id] = b"%d" % self.num_writes
        self.pool.share(prefix)
        self.holders.append(prefix + page_ids)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def share(self, data: st.DataObject) -> None:
        page_ids = data.draw(st.sampled_from(self.holders))
        self.pool.share(page_ids)
        self.holders.append(list(page_ids))

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def index(self, data: st.DataObject) -> None:
        page_ids = data.draw(st.sampled_from(self.holders))
        for number, page_id in enumerate(page_ids):
            if page_id not in self.pool.index:
                self.pool.index.insert(self.contents[page_id], page_id, page_ids[number - 1] if number else None)
        self.chains.append([self.contents[page_id] for page_id in page_ids])

    @precondition(lambda self: self.chains)
    @rule(data=st.data())
    def find(self, data: st.DataObject) -> None:
        found = []
        for key in data.draw(st.sampled_from(self.chains)):
            if (page_id := self.pool.index.find(key)) is None:
                break
            assert self.contents[page_id] == key
            found.append(page_id)
        self.pool.share(found)
        self.holders.append(found)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        page_ids = self.holders.pop(data.draw(st.integers(0, len(self.holders) - 1)))
        self.pool.release(page_ids)
        self.num_writes += 1
        for page_id in set(page_ids) - self.held:
            self.last_use[page_id] = self.num_writes

    @precondition(lambda self: len(self.pool.index) > 0)
    @rule(data=st.data())
    def unindex(self, data: st.DataObject) -> None:
        page_id = data.draw(st.sampled_from([page_id for page_id in range(NUM_PAGES) if page_id in self.pool.index]))
        self.pool.unindex(page_id)
        assert self.pool.index.find(self.contents[page_id]) is None

    @property
    def held(self) -> set[int]:
        return {page_id for holder in self.holders for page_id in holder}

    @invariant()
    def adds_up(self) -> None:
        held = self.held
        assert self.pool.num_held == len(held)
        assert self.pool.num_available == NUM_PAGES - len(held)
        assert self.pool.num_free + self.pool.num_cached == self.pool.num_available
        for page_id in held:
            assert self.pool.is_shared(page_id) == (sum(page_id in holder for holder in self.holders) > 1)
        self.pool.check_integrity(self.holders)


TestPool = PoolMachine.TestCase


def make_chain(pool: PagePool, name: str, count: int) -> list[int]:
    """Allocate pages and index them one below the other."""
    page_ids = pool.allocate(count)
    for number, page_id in enumerate(page_ids):
        pool.index.insert(b"%s%d" % (name.encode(), number), page_id, page_ids[number - 1] if number else None)
    return page_ids


def test_the_end_of_the_chain_used_longest_ago_goes_first() -> None:
    """Free pages go before cached ones, the tail of a chain before its head, and a chain used again goes last."""
    pool = PagePool(7, page_size=4)
    old, new = make_chain(pool, "old", 3), make_chain(pool, "new", 3)
    pool.release(old)
    pool.release(new)
    pool.share(old[:1])
    pool.release(old[:1])
    order = []
    for _ in range(7):
        before = {page_id for page_id in range(7) if page_id in pool.index}
        pool.allocate(1)
        order.append(before - {page_id for page_id in range(7) if page_id in pool.index})

    assert order == [set(), {old[2]}, {old[1]}, {new[2]}, {new[1]}, {new[0]}, {old[0]}]


def test_integrity_notices_a_lost_page() -> None:
    """A page that no page table holds, though the pool counts a reference, is an error."""
    pool = PagePool(4, page_size=2)
    held = pool.allocate(2)

    with pytest.raises(AssertionError, match="1 references, but 0 page tables"):
        pool.check_integrity([held[:1]])


def test_integrity_notices_a_cached_page_that_cannot_be_found() -> None:
    """A cached page that the index has lost would never be used again, and is an error."""
    pool = PagePool(4, page_size=2)
    chain = make_chain(pool, "chain", 2)
    pool.release(chain)
    pool.index.remove(chain[1])

    with pytest.raises(AssertionError, match="not indexed"):
        pool.check_integrity([])


@pytest.mark.parametrize(("num_tokens", "expected"), [(0, 0), (1, 1), (4, 1), (5, 2)])
def test_pages_for(num_tokens: int, expected: int) -> None:
    """Tokens fill pages from the first slot on."""
    assert PagePool(1, page_size=4).pages_for(num_tokens) == expected
