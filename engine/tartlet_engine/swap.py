"""Swapped pages: contents of pages that had to leave the KV cache, in the host's memory.

A swapped page stands in page tables in the place of the page that it was, with the same holders. So whatever is done to
a page table, forking, truncating, freeing, is done to swapped pages as well, and none can be left behind. Before its
sequence takes part in a step, a swapped page must be brought back (`pager.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# Ids from here on are of swapped pages; those below are of pages of the pool.
FIRST_SWAPPED_ID = 1 << 32


def is_swapped(page_id: int) -> bool:
    """Tell whether an id of a page table is that of a swapped page."""
    return page_id >= FIRST_SWAPPED_ID


@dataclass(slots=True)
class _SwappedPage:
    contents: Tensor  # uint8[page_bytes]
    num_references: int


class SwapSpace:
    """Host memory for swapped pages, up to a limit. Not thread-safe."""

    def __init__(self, max_bytes: int, page_bytes: int) -> None:
        """Make room for as many pages of `page_bytes` as fit into `max_bytes`. Memory is taken as it is needed."""
        self.page_bytes = page_bytes
        self.max_pages = max_bytes // page_bytes
        self._pages: dict[int, _SwappedPage] = {}
        self._next_id = FIRST_SWAPPED_ID

    @property
    def num_pages(self) -> int:
        """Pages that are swapped."""
        return len(self._pages)

    @property
    def num_free(self) -> int:
        """Pages that still fit."""
        return self.max_pages - len(self._pages)

    def add(self, contents: Tensor, num_references: int) -> int:
        """Keep a page's contents, which must fit, for so many page tables. Returns the swapped page's id."""
        assert self.num_free > 0, "the swap space is full"
        page_id, self._next_id = self._next_id, self._next_id + 1
        self._pages[page_id] = _SwappedPage(contents, num_references)
        return page_id

    def contents(self, page_id: int) -> Tensor:
        """Return what a swapped page holds: uint8[page_bytes]."""
        return self._pages[page_id].contents

    def remove(self, page_id: int) -> int:
        """Forget a swapped page, because it is in the pool again. Returns how many page tables hold it."""
        return self._pages.pop(page_id).num_references

    def share(self, page_id: int) -> None:
        """Add a holder."""
        self._pages[page_id].num_references += 1

    def release(self, page_id: int) -> None:
        """Take a holder from the page; without any it is forgotten."""
        page = self._pages[page_id]
        page.num_references -= 1
        if page.num_references == 0:
            del self._pages[page_id]

    def is_shared(self, page_id: int) -> bool:
        """Tell whether more than one page table holds the page."""
        return self._pages[page_id].num_references > 1

    def check_integrity(self, counts: Counter[int]) -> None:
        """Raise AssertionError unless `counts`, of ids in all page tables, accounts for every reference."""
        held = {page_id: count for page_id, count in counts.items() if is_swapped(page_id)}
        assert held == {page_id: page.num_references for page_id, page in self._pages.items()}, "swapped pages leak"
        assert 0 <= self.num_pages <= self.max_pages, "more pages are swapped than fit"
        assert all(page.contents.nbytes == self.page_bytes for page in self._pages.values())
