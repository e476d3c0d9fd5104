"""The pages of one sequence, in order: token `i` lives in page `i // page_size` at offset `i % page_size`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tartlet_engine.accounts import RunAccount
from tartlet_engine.pages import OutOfPagesError, PagePool
from tartlet_engine.swap import is_swapped


@dataclass(frozen=True, slots=True)
class PageCopy:
    """A copy of a page's contents that must happen before the step writes anything."""

    source_page_id: int
    target_page_id: int


@dataclass(frozen=True, slots=True)
class SlotMoves:
    """Moves of tokens' keys and values. All sources are read before any target page is cleared and written."""

    source_page_ids: list[int]
    source_offsets: list[int]
    target_page_ids: list[int]
    target_offsets: list[int]


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

    def num_unshared(self, first: int, last: int) -> int:
        """Pages that no other page table holds, from the `first` to before the `last`."""
        return sum(not self._pool.is_shared(page_id) for page_id in self.page_ids[first:last])

    @property
    def num_swapped(self) -> int:
        """Pages that must be brought back before the sequence takes part in a step."""
        if self._pool.swap.num_pages == 0 or not is_swapped(max(self.page_ids, default=0)):
            return 0  # as for most sequences in most steps
        return sum(map(is_swapped, self.page_ids))

    def num_new_pages(self, start: int, end: int) -> int:
        """Return how many available pages it takes to write the tokens `start <= i < end`, a copy on write included."""
        grown = max(0, self._pool.pages_for(end) - len(self.page_ids))
        return grown + (1 if self._must_copy(start, end) else 0)

    def reserve(self, start: int, end: int) -> PageCopy | None:
        """Make the slots of the tokens `start <= i < end` writable; what lies before `start` is kept.

        Returns the copy to carry out before they are written, if the first page is shared or indexed. Pages after the
        first one are neither, because only computed tokens are, and writing begins where those end.

        Raises:
            OutOfPagesError: too few pages are available; nothing has changed.
        """
        index, num_new_pages = start // self._pool.page_size, self.num_new_pages(start, end)
        is_copied = self._must_copy(start, end)
        is_kept = not is_copied and self._is_indexed(start, end) and num_new_pages < self._pool.num_available
        # A page that is kept for others becomes available itself, so this takes nothing from anybody.
        new_page_ids = self._pool.allocate(num_new_pages + is_kept)
        # Making room may have dropped a page before it, without which nobody can find it.
        is_indexed = self._is_indexed(start, end)
        if is_kept and not is_indexed:
            self._pool.release([new_page_ids.pop()])
        is_copied = is_copied or (is_kept and is_indexed)
        self._account.hold(new_page_ids)
        copy = None
        if is_copied:
            copy = PageCopy(self.page_ids[index], new_page_ids.pop(0))
            self._replace(index, copy.target_page_id)
        elif is_indexed:
            self._pool.unindex(self.page_ids[index])
        self.page_ids.extend(new_page_ids)
        return copy

    def hold_found(self, first: int, page_ids: list[int]) -> None:
        """Hold, from the `first` page on, pages found in the pool's index instead of what is held now."""
        self._pool.share(page_ids)
        self._account.hold(page_ids)
        self.truncate(first * self._pool.page_size)
        self.page_ids += page_ids

    def replace_with(self, index: int, page_id: int) -> None:
        """Hold an indexed page with the same contents instead of the one held now."""
        self._pool.share([page_id])
        self._account.hold([page_id])
        self._replace(index, page_id)

    def share_prefix(self, other: PageTable, num_tokens: int) -> None:
        """Hold, instead of what is held now, the pages of the other's first `num_tokens` tokens. Costs no page."""
        page_ids = other.page_ids[: self._pool.pages_for(num_tokens)]
        self._pool.share(page_ids)
        self._account.hold(page_ids)
        self.truncate(0)
        self.page_ids = page_ids

    def hold_swapped(self, page_ids: list[int]) -> None:
        """Hold, where nothing is held yet, pages that have just been put into the swap space for this page table."""
        assert not self.page_ids, "pages are held already"
        self._account.hold(page_ids)
        self.page_ids = page_ids

    def truncate(self, num_tokens: int) -> None:
        """Give back the pages that the first `num_tokens` tokens do not need."""
        num_kept = self._pool.pages_for(num_tokens)
        dropped = self.page_ids[num_kept:]
        del self.page_ids[num_kept:]
        self._account.drop(dropped)
        self._pool.release(dropped)

    def rename(self, new_ids: Mapping[int, int]) -> None:
        """Take note that pages have moved out or in: `PagePool.move_out`, `PagePool.move_in`."""
        if new_ids.keys().isdisjoint(self.page_ids):
            return
        for index, page_id in enumerate(self.page_ids):
            if (new_id := new_ids.get(page_id)) is not None:
                self.page_ids[index] = new_id
                self._account.hold([new_id])
                self._account.drop([page_id])

    def pages_to_evict(self, start: int, end: int, num_tokens: int) -> tuple[int, int, int]:
        """Return which pages `evict` replaces, from the first to before the last, and with how many new ones."""
        size, num_dropped = self._pool.page_size, end - start
        first = start // size
        if num_dropped % size:
            return first, len(self.page_ids), self._pool.pages_for(num_tokens - num_dropped) - first
        is_split = start % size > 0
        return first, first + num_dropped // size + is_split, int(is_split)

    def evict(self, start: int, end: int, num_tokens: int) -> SlotMoves | None:
        """Drop the slots `start <= i < end` of `num_tokens`, with a token after them; later ones move up.

        Whole pages are dropped without a copy. Otherwise tokens move into new pages, since pages may be shared or
        indexed: those of one page if as many tokens are dropped as fill pages, and else all after the first dropped.
        Returns the moves to carry out at once, if there are any.

        Raises:
            OutOfPagesError, RunLimitError: there are too few pages for what moves; nothing has changed.
        """
        size, num_dropped = self._pool.page_size, end - start
        new_len = num_tokens - num_dropped
        first, last, num_new = self.pages_to_evict(start, end, num_tokens)
        dropped = self.page_ids[first:last]
        num_lost = self._account.num_held_once(dropped)
        self._account.require_pages(num_new - num_lost)
        available = self._pool.num_available + self.num_unshared(first, last)
        if num_new > available:
            raise OutOfPagesError(num_new, available)
        sources = list(self.page_ids)
        self._account.drop(dropped)
        self._pool.release(dropped)
        new_page_ids = self._pool.allocate(num_new)
        self._account.hold(new_page_ids)
        self.page_ids[first:last] = new_page_ids
        if not num_new:
            return None
        targets = range(first * size, min(new_len, (first + num_new) * size))
        return _moves(sources, self.page_ids, size, targets, start, end)

    def moves_to(self, other: PageTable, targets: range, start: int, end: int) -> SlotMoves:
        """Return the moves that fill these slots of another page table, which lacks this one's `start <= i < end`."""
        return _moves(self.page_ids, other.page_ids, self._pool.page_size, targets, start, end)

    def _is_indexed(self, start: int, end: int) -> bool:
        index = start // self._pool.page_size
        return start < end and index < len(self.page_ids) and self.page_ids[index] in self._pool.index

    def _must_copy(self, start: int, end: int) -> bool:
        index = start // self._pool.page_size
        return start < end and index < len(self.page_ids) and self._pool.is_shared(self.page_ids[index])

    def _replace(self, index: int, page_id: int) -> None:
        """Put a page that is held already in the place of another, which is let go of."""
        old_page_id, self.page_ids[index] = self.page_ids[index], page_id
        self._account.drop([old_page_id])
        self._pool.release([old_page_id])


def _moves(source_ids: list[int], target_ids: list[int], size: int, targets: range, start: int, end: int) -> SlotMoves:
    """Return the moves into `targets`, slots of a sequence after the slots `start <= i < end` were dropped from it."""
    origins = [slot if slot < start else slot + end - start for slot in targets]
    return SlotMoves(
        [source_ids[slot // size] for slot in origins],
        [slot % size for slot in origins],
        [target_ids[slot // size] for slot in targets],
        [slot % size for slot in targets],
    )
