"""Page tables: each sequence reads back what it wrote, whatever its forks write and whatever the index keeps."""

from __future__ import annotations

import pytest
import torch
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tartlet_engine.accounts import RunAccount
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import OutOfPagesError, PagePool
from tartlet_engine.swap import SwapSpace

PAGE_SIZE = 4


class TableMachine(RuleBasedStateMachine):
    """Sequences that write, fork, truncate, index and find over one pool; a dictionary stands for the memory."""

    num_pages = 200

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(self.num_pages, PAGE_SIZE)
        self.account = RunAccount(1, "local", None, None)
        self.memory: dict[tuple[int, int], int] = {}
        self.tables: list[tuple[PageTable, list[int]]] = [(PageTable(self.pool, self.account), [])]
        self.written: list[list[int]] = []  # what has been indexed, whether it still is or not
        self.next_value = 0

    @rule(data=st.data(), count=st.integers(1, 10))
    def write(self, data: st.DataObject, count: int) -> None:
        table, values = data.draw(st.sampled_from(self.tables))
        start, end = len(values), len(values) + count
        expected, available = table.num_new_pages(start, end), self.pool.num_available
        if expected > available:
            with pytest.raises(OutOfPagesError):
                table.reserve(start, end)
            return
        copy = table.reserve(start, end)
        assert self.pool.num_available == available - expected
        if copy is not None:
            for offset in range(PAGE_SIZE):
                if (copy.source_page_id, offset) in self.memory:
                    self.memory[copy.target_page_id, offset] = self.memory[copy.source_page_id, offset]
        for position in range(start, end):
            self.next_value += 1
            page_id = table.page_ids[position // PAGE_SIZE]
            assert not self.pool.is_shared(page_id)
            assert page_id not in self.pool.index
            self.memory[page_id, position % PAGE_SIZE] = self.next_value
            values.append(self.next_value)

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        table, values = data.draw(st.sampled_from(self.tables))
        length = data.draw(st.integers(0, len(values)))
        available = self.pool.num_available
        child = PageTable(self.pool, self.account)
        child.share_prefix(table, length)
        assert self.pool.num_available == available
        self.tables.append((child, values[:length]))

    @rule(data=st.data())
    def index(self, data: st.DataObject) -> None:
        table, values = data.draw(st.sampled_from(self.tables))
        for number in range(len(values) // PAGE_SIZE):
            page_id = table.page_ids[number]
            if page_id not in self.pool.index:
                key = repr(values[: (number + 1) * PAGE_SIZE]).encode()
                if (known := self.pool.index.find(key)) is not None:
                    table.replace_with(number, known)
                else:
                    self.pool.index.insert(key, page_id, table.page_ids[number - 1] if number else None)
        if values:
            self.written.append(list(values))

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def find(self, data: st.DataObject) -> None:
        wanted = data.draw(st.sampled_from(self.written))
        table, values = data.draw(st.sampled_from(self.tables))
        kept = next((i for i, pair in enumerate(zip(values, wanted, strict=False)) if pair[0] != pair[1]), 0)
        first, found = kept // PAGE_SIZE, []
        for number in range(first, len(wanted) // PAGE_SIZE):
            page_id = self.pool.index.find(repr(wanted[: (number + 1) * PAGE_SIZE]).encode())
            if page_id is None:
                break
            found.append(page_id)
        table.hold_found(first, found)
        values[:] = wanted[: (first + len(found)) * PAGE_SIZE]

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        table, values = data.draw(st.sampled_from(self.tables))
        length = data.draw(st.integers(0, len(values)))
        table.truncate(length)
        del values[length:]

    @invariant()
    def reads_what_it_wrote(self) -> None:
        for table, values in self.tables:
            slots = [(table.page_ids[i // PAGE_SIZE], i % PAGE_SIZE) for i in range(len(values))]
            assert [self.memory[slot] for slot in slots] == values
        page_tables = [table.page_ids for table, _ in self.tables]
        self.pool.check_integrity(page_tables)
        self.account.check_integrity(page_tables)


class SmallPoolMachine(TableMachine):
    """The same with so few pages that those indexed are dropped, or written in place, all the time."""

    num_pages = 10


TestTables = TableMachine.TestCase
TestTablesOfASmallPool = SmallPoolMachine.TestCase


def test_forks_of_a_prefix_hold_one_page_more_each() -> None:
    """N forks of a P-page prefix hold P pages, and P + N after each wrote a token, whether the last page was full."""
    for prefix_len in (3 * PAGE_SIZE, 3 * PAGE_SIZE - 1):
        pool, account = PagePool(100, PAGE_SIZE), RunAccount(1, "local", None, None)
        parent = PageTable(pool, account)
        parent.reserve(0, prefix_len)
        forks = [PageTable(pool, account) for _ in range(8)]
        for fork in forks:
            fork.share_prefix(parent, prefix_len)
        before = pool.num_held
        for fork in forks:
            fork.reserve(prefix_len, prefix_len + 1)

        assert (before, pool.num_held, account.num_pages) == (3, 3 + 8, 3 + 8)
        assert all(fork.num_shared == len(fork.page_ids) - 1 for fork in forks)


def test_an_indexed_page_is_copied_before_it_is_written() -> None:
    """Truncated into an indexed page and going on, a sequence writes a copy; the page is kept, and costs nobody one."""
    pool, account = PagePool(3, PAGE_SIZE), RunAccount(1, "local", None, None)
    table = PageTable(pool, account)
    table.reserve(0, PAGE_SIZE)
    (page_id,) = table.page_ids
    pool.index.insert(b"key", page_id, None)
    table.truncate(2)
    copy = table.reserve(2, 3)

    assert copy is not None
    assert (copy.source_page_id, [copy.target_page_id]) == (page_id, table.page_ids)
    assert (pool.index.find(b"key"), pool.num_cached, pool.num_available) == (page_id, 1, 2)


def test_without_a_page_for_a_copy_an_indexed_page_is_written_in_place() -> None:
    """A sequence that has the only page goes on in it, and it is not found any more."""
    pool, account = PagePool(1, PAGE_SIZE), RunAccount(1, "local", None, None)
    table = PageTable(pool, account)
    table.reserve(0, PAGE_SIZE)
    pool.index.insert(b"key", table.page_ids[0], None)
    table.truncate(2)

    assert table.reserve(2, 3) is None
    assert (pool.index.find(b"key"), pool.num_held) == (None, 1)


@pytest.mark.parametrize(("num_pages", "end", "is_kept"), [(2, 7, False), (2, 9, False), (3, 9, False), (3, 7, True)])
def test_making_room_may_drop_what_an_indexed_page_is_found_by(num_pages: int, end: int, is_kept: bool) -> None:
    """If the page before it is swapped and its place is taken, it is not kept for others, but written in place."""
    pool, account = PagePool(num_pages, PAGE_SIZE, SwapSpace(100, page_bytes=1)), RunAccount(1, "local", None, None)
    table = PageTable(pool, account)
    table.reserve(0, 8)
    first, second = table.page_ids
    pool.index.insert(b"first", first, None)
    pool.index.insert(b"second", second, first)
    table.rename({first: pool.move_out(first, torch.zeros(1, dtype=torch.uint8))})
    assert (pool.num_available, pool.num_cached) == (num_pages - 1, 1)
    table.truncate(6)

    copy = table.reserve(6, end)

    assert (copy is not None) == is_kept == (pool.index.find(b"second") == second)
    assert (second in table.page_ids) == (not is_kept)
    pool.check_integrity([table.page_ids])
    account.check_integrity([table.page_ids])


@pytest.mark.parametrize(("start", "end"), [(0, 4), (4, 12), (3, 7), (1, 2), (5, 18), (0, 19), (7, 7 + 8)])
@pytest.mark.parametrize("is_shared", [True, False])
def test_evicting_moves_what_comes_after(start: int, end: int, is_shared: bool) -> None:
    """Read through the moves, the pages hold the tokens that are left, in order; shared pages are not written."""
    pool = PagePool(16, 4)
    account = RunAccount(1, "t", None, None)
    table, fork = PageTable(pool, account), PageTable(pool, account)
    table.reserve(0, 20)
    contents = {
        (page_id, offset): 4 * index + offset for index, page_id in enumerate(table.page_ids) for offset in range(4)
    }
    if is_shared:
        fork.share_prefix(table, 20)
    kept = list(fork.page_ids)
    moves = table.evict(start, end, 20)
    if moves is not None:
        assert not is_shared or not set(moves.target_page_ids) & set(kept)
        sources = [contents[slot] for slot in zip(moves.source_page_ids, moves.source_offsets, strict=True)]
        targets = zip(moves.target_page_ids, moves.target_offsets, strict=True)
        contents |= dict(zip(targets, sources, strict=True))
    left = [token for token in range(20) if not start <= token < end]

    assert [contents[table.page_ids[i // 4], i % 4] for i in range(len(left))] == left
    assert len(table.page_ids) == pool.pages_for(len(left))
    pool.check_integrity([table.page_ids, fork.page_ids])
    account.check_integrity([table.page_ids, fork.page_ids])


def test_evicting_without_room_changes_nothing() -> None:
    """Where shared pages would have to be copied and there are none, the table stays as it is."""
    pool = PagePool(5, 4)
    account = RunAccount(1, "t", None, None)
    table, fork = PageTable(pool, account), PageTable(pool, account)
    table.reserve(0, 20)
    fork.share_prefix(table, 20)
    before = list(table.page_ids)
    with pytest.raises(OutOfPagesError):
        table.evict(1, 2, 20)

    assert table.page_ids == before
    pool.check_integrity([table.page_ids, fork.page_ids])
