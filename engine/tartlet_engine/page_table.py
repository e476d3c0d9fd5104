"""The pages of one sequence, in order: token `i` lives in page `i // page_size` at offset `i % page_size`."""

from __future__ import annotations

from dataclasses import dataclass

from tartlet_engine.accounts import RunAccount
from tartlet_engine.pages import PagePool


@dataclass(frozen=True, slots=True)
class PageCopy:
    """A copy of a page's contents that must happen before the step writes anything."""

    source_page_id: int
    target_page_id: int


class PageTable:
    """The pages that one sequence holds, kept in step with the pool and with the run's account."""

    def __init__(self, pool: PagePool, account: RunAccount) -> None:
        """Make an empty page table."""
        self._pool = pool
        self._account = account
        self.page_ids: list[int] = []

    @property
    def page_size(self) -> int:
        """Tokens of one page."""
        return self._pool.page_size

    @property
    def num_shared(self) -> int:
        """Pages that other page tables hold too."""
        return sum(self._pool.is_shared(page_id) for page_id in self.page_ids)

    def num_new_pages(self, start: int, end: int) -> int:
        """Return how many free pages it takes to write the tokens `start <= i < end`, a copy on write included."""
        grown = max(0, self._pool.pages_for(end) - len(self.page_ids))
        return grown + (1 if self._must_copy(start, end) else 0)

    def reserve(self, start: int, end: int) -> PageCopy | None:
        """Make the slots of the tokens `start <= i < end` writable; what lies before `start` is kept.

        Returns the copy to carry out before they are written, if the first page is shared. Pages after the first one
        are never shared, because only computed tokens are (`share_prefix`) and writing begins where those end.

        Raises:
            OutOfPagesError: too few pages are free; nothing has changed.
        """
        new_page_ids = self._pool.allocate(self.num_new_pages(start, end))
        self._account.hold(new_page_ids)
        copy = None
        if self._must_copy(start, end):
            index = start // self._pool.page_size
            copy = PageCopy(self.page_ids[index], new_page_ids.pop(0))
            self._account.drop([copy.source_page_id])
            self._pool.release([copy.source_page_id])
            self.page_ids[index] = copy.target_page_id
        self.page_ids.extend(new_page_ids)
        return copy

    def share_prefix(self, other: PageTable, num_tokens: int) -> None:
        """Hold, instead of what is held now, the pages of the other's first `num_tokens` tokens. Costs no page."""
        page_ids = other.page_ids[: self._pool.pages_for(num_tokens)]
        self._pool.share(page_ids)
        self._account.hold(page_ids)
        self.truncate(0)
        self.page_ids = page_ids

    def truncate(self, num_tokens: int) -> None:
        """Give back the pages that the first `num_tokens` tokens do not need."""
        num_kept = self._pool.pages_for(num_tokens)
        dropped = self.page_ids[num_kept:]
        del self.page_ids[num_kept:]
        self._account.drop(dropped)
        self._pool.release(dropped)

    def _must_copy(self, start: int, end: int) -> bool:
        index = start // self._pool.page_size
        return start < end and index < len(self.page_ids) and self._pool.is_shared(self.page_ids[index])
