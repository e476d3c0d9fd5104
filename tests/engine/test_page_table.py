"""Page tables: each sequence reads back what it wrote, whatever its forks write."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tartlet_engine.accounts import RunAccount
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool

PAGE_SIZE = 4


class TableMachine(RuleBasedStateMachine):
    """Sequences that write, fork and truncate over one pool; a dictionary stands for the memory."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(200, PAGE_SIZE)
        self.account = RunAccount(1, "local", None, None)
        self.memory: dict[tuple[int, int], int] = {}
        self.tables: list[tuple[PageTable, list[int]]] = [(PageTable(self.pool, self.account), [])]
        self.next_value = 0

    @rule(data=st.data(), count=st.integers(1, 10))
    def write(self, data: st.DataObject, count: int) -> None:
        table, values = data.draw(st.sampled_from(self.tables))
        start, end = len(values), len(values) + count
        expected, free = table.num_new_pages(start, end), self.pool.num_free
        if expected > free:
            return
        copy = table.reserve(start, end)
        assert self.pool.num_free == free - expected
        if copy is not None:
            for offset in range(PAGE_SIZE):
                if (copy.source_page_id, offset) in self.memory:
                    self.memory[copy.target_page_id, offset] = self.memory[copy.source_page_id, offset]
        for position in range(start, end):
            self.next_value += 1
            page_id = table.page_ids[position // PAGE_SIZE]
            assert not self.pool.is_shared(page_id)
            self.memory[page_id, position % PAGE_SIZE] = self.next_value
            values.append(self.next_value)

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        table, values = data.draw(st.sampled_from(self.tables))
        length = data.draw(st.integers(0, len(values)))
        free = self.pool.num_free
        child = PageTable(self.pool, self.account)
        child.share_prefix(table, length)
        assert self.pool.num_free == free
        self.tables.append((child, values[:length]))

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


TestTables = TableMachine.TestCase


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
