"""The pages of the KV cache as numbers: who holds which, and which are free.

Pure bookkeeping, without tensors. A page is `page_size` consecutive token slots in all layers. A page that several page
tables hold is shared: it must not be written, whoever wants to write gets a copy first (copy on write).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


class OutOfPagesError(Exception):
    """More pages were asked for than are free."""

    def __init__(self, need: int, free: int) -> None:
        super().__init__(f"need {need} pages, {free} are free")
        self.need = need
        self.free = free


class PagePool:
    """A fixed number of pages, each free or held by one or more page tables. Not thread-safe."""

    def __init__(self, num_pages: int, page_size: int) -> None:
        """Make a pool in which every page is free. Raises ValueError unless both numbers are positive."""
        if num_pages < 1 or page_size < 1:
            raise ValueError(f"a page pool needs pages and slots, got {num_pages} pages of {page_size} tokens")
        self.num_pages = num_pages
        self.page_size = page_size
        # Taken from the end: what was freed last is reused first, so that memory never used is never touched.
        self._free = list(range(num_pages - 1, -1, -1))
        self._num_references = [0] * num_pages

    @property
    def num_free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    @property
    def num_held(self) -> int:
        """Pages that at least one page table holds."""
        return self.num_pages - len(self._free)

    def pages_for(self, num_tokens: int) -> int:
        """Return how many pages hold `num_tokens` tokens."""
        return -(-num_tokens // self.page_size)

    def allocate(self, num_pages: int) -> list[int]:
        """Take pages for one holder. Raises OutOfPagesError, and then takes none."""
        if num_pages > len(self._free):
            raise OutOfPagesError(num_pages, len(self._free))
        page_ids = [self._free.pop() for _ in range(num_pages)]
        for page_id in page_ids:
            self._num_references[page_id] = 1
        return page_ids

    def share(self, page_ids: Iterable[int]) -> None:
        """Add a holder to each of these pages, which somebody must hold already."""
        for page_id in page_ids:
            assert self._num_references[page_id] > 0, f"page {page_id} is shared, but free"
            self._num_references[page_id] += 1

    def release(self, page_ids: Iterable[int]) -> None:
        """Take a holder from each of these pages; those without any become free."""
        for page_id in page_ids:
            assert self._num_references[page_id] > 0, f"page {page_id} is released, but free"
            self._num_references[page_id] -= 1
            if self._num_references[page_id] == 0:
                self._free.append(page_id)

    def is_shared(self, page_id: int) -> bool:
        """Tell whether more than one page table holds the page."""
        return self._num_references[page_id] > 1

    def check_integrity(self, page_tables: Iterable[Sequence[int]]) -> None:
        """Raise AssertionError unless exactly these page tables account for every reference and every free page."""
        counts = Counter(page_id for page_table in page_tables for page_id in page_table)
        for page_id, num_references in enumerate(self._num_references):
            assert counts[page_id] == num_references, (
                f"page {page_id} has {num_references} references, but {counts[page_id]} page tables hold it"
            )
        free = set(self._free)
        assert len(free) == len(self._free), "a page is free twice"
        assert free == {page_id for page_id, count in enumerate(self._num_references) if count == 0}
        assert len(free) + self.num_held == self.num_pages
