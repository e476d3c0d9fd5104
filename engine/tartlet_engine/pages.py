"""The pages of the KV cache as numbers: who holds which, which are cached, and which are free.

Pure bookkeeping, without tensors. A page is `page_size` consecutive token slots in all layers. A page that several page
tables hold is shared: it must not be written, whoever wants to write gets a copy first (copy on write). Nor must a page
that is indexed, since what is found under its key is what it was indexed with.

A page is in one of three states. Held: by one or more page tables. Cached: held by none, but indexed, so that whoever
has the same tokens can hold it again. Free: neither. Cached pages are dropped when there are too few free ones.

A held page can be moved out, to the swap space (`swap.py`), and in again. Page tables then hold the id of the swapped
page, which is counted there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tartlet_engine.prefix_index import PrefixIndex
from tartlet_engine.swap import SwapSpace, is_swapped

if TYPE_CHECKING:
    from torch import Tensor


class OutOfPagesError(Exception):
    """More pages were asked for than are free or cached."""

    def __init__(self, need: int, available: int) -> None:
        super().__init__(f"need {need} pages, {available} are available")
        self.need = need
        self.available = available


class PagePool:
    """A fixed number of pages, each free, cached, or held by one or more page tables. Not thread-safe."""

    def __init__(self, num_pages: int, page_size: int, swap: SwapSpace | None = None) -> None:
        """Make a pool in which every page is free, with or without a place to move pages to.

        Raises ValueError unless both numbers are positive.
        """
        if num_pages < 1 or page_size < 1:
            raise ValueError(f"a page pool needs pages and slots, got {num_pages} pages of {page_size} tokens")
        self.num_pages = num_pages
        self.page_size = page_size
        self.index = PrefixIndex()
        self.swap = SwapSpace(0, 1) if swap is None else swap
        # Taken from the end: what was freed last is reused first, so that memory never used is never touched.
        self._free = list(range(num_pages - 1, -1, -1))
        # In the order of their last use. Whoever holds a page holds those before it in its chain too, and lets go of
        # them last to first, so a page comes after all that could not be found without it.
        self._cached: dict[int, None] = {}
        self._num_references = [0] * num_pages

    @property
    def num_free(self) -> int:
        """Pages that nobody holds and that are not cached."""
        return len(self._free)

    @property
    def num_cached(self) -> int:
        """Pages that nobody holds, whose contents can still be found."""
        return len(self._cached)

    @property
    def num_available(self) -> int:
        """Pages that can be allocated: those free, and those cached, which are dropped for it."""
        return len(self._free) + len(self._cached)

    @property
    def num_held(self) -> int:
        """Pages that at least one page table holds."""
        return self.num_pages - self.num_available

    def pages_for(self, num_tokens: int) -> int:
        """Return how many pages hold `num_tokens` tokens."""
        return -(-num_tokens // self.page_size)

    def allocate(self, num_pages: int) -> list[int]:
        """Take pages for one holder; cached ones only where free ones run out, the least recently used first.

        Raises OutOfPagesError, and then takes none.
        """
        if num_pages > self.num_available:
            raise OutOfPagesError(num_pages, self.num_available)
        while num_pages > len(self._free):
            self.unindex(next(iter(self._cached)))
        page_ids = [self._free.pop() for _ in range(num_pages)]
        for page_id in page_ids:
            self._num_references[page_id] = 1
        return page_ids

    def share(self, page_ids: Iterable[int]) -> None:
        """Add a holder to each of these pages, which must be held or cached."""
        for page_id in page_ids:
            if is_swapped(page_id):
                self.swap.share(page_id)
                continue
            if self._num_references[page_id] == 0:
                assert page_id in self._cached, f"page {page_id} is shared, but free"
                del self._cached[page_id]
            self._num_references[page_id] += 1

    def release(self, page_ids: Sequence[int]) -> None:
        """Take a holder from each of these pages, the last of a chain first.

        Those that nobody holds any more are cached if they are indexed, and else free.
        """
        for page_id in reversed(page_ids):
            if is_swapped(page_id):
                self.swap.release(page_id)
                continue
            assert self._num_references[page_id] > 0, f"page {page_id} is released, but free"
            self._num_references[page_id] -= 1
            if self._num_references[page_id] == 0:
                self._let_go(page_id)

    def move_out(self, page_id: int, contents: Tensor) -> int:
        """Move a held page to the swap space, which must have room. Returns the id that all its holders then hold."""
        swapped_id = self.swap.add(contents, self._num_references[page_id])
        self._num_references[page_id] = 0
        self._let_go(page_id)
        return swapped_id

    def move_in(self, swapped_id: int, page_id: int) -> None:
        """Let all holders of a swapped page hold this one, which has been allocated for that and has its contents."""
        self._num_references[page_id] = self.swap.remove(swapped_id)

    def unindex(self, page_id: int) -> None:
        """Let an indexed page, and all below it, never be found again. Those of them that were cached are free."""
        for removed_id in self.index.remove(page_id):
            if removed_id in self._cached:
                del self._cached[removed_id]
                self._free.append(removed_id)

    def is_shared(self, page_id: int) -> bool:
        """Tell whether more than one page table holds the page."""
        return self.swap.is_shared(page_id) if is_swapped(page_id) else self._num_references[page_id] > 1

    def check_integrity(self, page_tables: Iterable[Sequence[int]]) -> None:
        """Raise AssertionError unless these page tables account for every reference, and every page has one state."""
        counts = Counter(page_id for page_table in page_tables for page_id in page_table)
        for page_id, num_references in enumerate(self._num_references):
            assert counts[page_id] == num_references, (
                f"page {page_id} has {num_references} references, but {counts[page_id]} page tables hold it"
            )
        free, cached = set(self._free), set(self._cached)
        held = {page_id for page_id, count in enumerate(self._num_references) if count > 0}
        assert len(free) == len(self._free), "a page is free twice"
        assert free | cached | held == set(range(self.num_pages)), "a page is in no state"
        assert len(free) + len(cached) + len(held) == self.num_pages, "a page is in two states"
        assert len(held) == self.num_held
        assert all(page_id in self.index for page_id in cached), "a cached page is not indexed"
        assert not any(page_id in self.index for page_id in free), "a free page is indexed"
        self.index.check_integrity()
        assert set(range(self.num_pages)).issuperset(self.index.page_ids), "a page is indexed that is not in the pool"
        self.swap.check_integrity(counts)

    def _let_go(self, page_id: int) -> None:
        if page_id in self.index:
            self._cached[page_id] = None
        else:
            self._free.append(page_id)
