"""The automatic prefix cache: what one sequence has computed, another with the same tokens takes instead. Pure Python.

Full pages are indexed as soon as they are computed (`note_computed`), so sequences that live at the same time share
them too. A sequence looks for pages whenever a chunk of its prompt would be computed (`take`), and not only at its
beginning: two that have the same prompt take turns, and no page is computed twice.
"""

from __future__ import annotations

from tartlet_engine.fairness import CACHED_COST
from tartlet_engine.pages import PagePool
from tartlet_engine.prefix_index import OPERATOR, PrefixRoot, page_key
from tartlet_engine.sequence import Sequence
from tartlet_engine.swap import is_swapped


class PrefixCache:
    """Finds and indexes the full pages of sequences. Not thread-safe."""

    def __init__(self, pool: PagePool, model_name: str) -> None:
        """Use the index of `pool`, for sequences of one model."""
        self._pool = pool
        self._model_name = model_name
        self._claimed: set[bytes] = set()  # keys of the pages that this step computes
        self.max_published_pages = 0  # of the longest prefix that is published
        self.num_found_tokens = 0
        self.num_lookup_tokens = 0

    def begin_step(self) -> None:
        """Forget who computes what: the last step is over."""
        self._claimed.clear()

    def is_claimed(self, sequence: Sequence) -> bool:
        """Tell whether the first page of a sequence that is neither computed nor found is being computed in this step.

        Then it pays to wait for the next one.
        """
        if not self._claimed or not sequence.is_indexable:
            return False
        first, last = sequence.num_computed // self._pool.page_size, sequence.target_len // self._pool.page_size
        end = first + len(self._find(sequence, first, last))
        return end < last and self.keys(sequence, last)[end] in self._claimed

    def claim(self, sequence: Sequence, start: int, end: int) -> None:
        """Take note that this step computes the sequence's tokens `start <= i < end`."""
        self.num_lookup_tokens += max(0, end - max(start, sequence.num_dropped))
        if sequence.is_indexable:
            first, last = start // self._pool.page_size, end // self._pool.page_size
            self._claimed.update(self.keys(sequence, last)[first:last])

    def num_missing_pages(self, sequence: Sequence) -> int:
        """Return how many pages a sequence needs, at least, beyond what it holds and what would be found."""
        num_pages, page_size = self._pool.pages_for(sequence.target_slots), self._pool.page_size
        if not sequence.is_indexable:
            return num_pages - len(sequence.page_table.page_ids)
        first, last = sequence.num_computed // page_size, sequence.target_len // page_size
        return num_pages - max(len(sequence.page_table.page_ids), first + len(self._find(sequence, first, last)))

    def take(self, sequence: Sequence) -> None:
        """Let a sequence hold the pages that are found of what it is to compute next.

        At least one token is left to compute, so that a demand ends as it does without a cache, with the last token's
        logits if they are needed.

        Raises:
            RunLimitError: the run may not hold so many pages; nothing has changed.
        """
        if not sequence.is_indexable:
            return
        page_size, page_table = self._pool.page_size, sequence.page_table
        first, last = sequence.num_computed // page_size, sequence.target_len // page_size
        found = self._find(sequence, first, last)
        num_computed = min((first + len(found)) * page_size, sequence.target_len - 1)
        if num_computed > sequence.num_computed:
            sequence.account.require_exchange(found, page_table.page_ids[first:])
            page_table.hold_found(first, found)
            sequence.num_computed = num_computed

    def note_found(self, sequence: Sequence, start: int) -> None:
        """Count and charge that a sequence which takes part in the step has taken its tokens from `start` on.

        What it had before, and had to give up for others, is its own, and not counted again.
        """
        num_tokens = sequence.num_computed - max(start, sequence.num_dropped)
        if num_tokens > 0:
            self.num_found_tokens += num_tokens
            self.num_lookup_tokens += num_tokens
            sequence.account.share.charge(CACHED_COST * num_tokens)
            if sequence.generation is not None:
                sequence.generation.note_found(num_tokens)

    def note_computed(self, sequence: Sequence) -> None:
        """Index the full pages that a sequence has computed. Of two with the same contents one is kept for both.

        While pages of it are swapped it has to wait: only what is in the pool can be found.
        """
        if not sequence.is_indexable:
            return
        index, page_ids = self._pool.index, sequence.page_table.page_ids
        num_full = first = sequence.num_computed // self._pool.page_size
        while first > 0 and page_ids[first - 1] not in index:
            first -= 1
        if first == num_full or any(map(is_swapped, page_ids[first:num_full])):
            return
        keys = self.keys(sequence, num_full)
        for number in range(first, num_full):
            known = index.find(keys[number])
            if known is None:
                index.insert(keys[number], page_ids[number], page_ids[number - 1] if number else None)
            else:
                sequence.page_table.replace_with(number, known)

    def keys(self, sequence: Sequence, num_pages: int) -> list[bytes]:
        """Return the keys of the sequence's first pages, at least `num_pages`. Each is computed once."""
        while len(sequence.page_keys) < num_pages:
            self._add_key(sequence, sequence.page_keys, sequence.account.tenant)
        return sequence.page_keys

    def _find(self, sequence: Sequence, first: int, last: int) -> list[int]:
        """Return the pages `first <= i < last` of the sequence that are there, up to the first that is not.

        What is published goes before what the sequence's own tenant has.
        """
        published = self._find_published(sequence, last) if first < self.max_published_pages else []
        keys = self.keys(sequence, last)
        found = published[first:]
        start = first + len(found)
        return found + self._find_own(sequence, start, keys[start:last] if start < last else [])

    def _find_own(self, sequence: Sequence, start: int, keys: list[bytes]) -> list[int]:
        """Return the pages with these keys, of the sequence's pages from `start` on, up to the first that is not there.

        A prompt that waits asks in every step. What was found last time is still there if nothing has been taken out of
        the index since. Then one lookup tells whether there is more.
        """
        index = self._pool.index
        known_start, known, num_removed = sequence.found_pages
        if known_start != start or len(known) > len(keys) or num_removed != index.num_removed:
            known = []
        found = list(known)
        for key in keys[len(known) :]:
            if (page_id := index.find(key)) is None:
                break
            found.append(page_id)
        sequence.found_pages = (start, found, index.num_removed)
        return list(found)

    def _find_published(self, sequence: Sequence, last: int) -> list[int]:
        """Return the first pages of the sequence, at most `last`, that are published."""
        found: list[int] = []
        keys = sequence.published_keys
        for number in range(min(last, self.max_published_pages)):
            if number == len(keys):
                self._add_key(sequence, keys, OPERATOR)
            if (page_id := self._pool.index.find(keys[number])) is None:
                break
            found.append(page_id)
        return found

    def _add_key(self, sequence: Sequence, keys: list[bytes], owner: str) -> None:
        """Add to a sequence's keys that of its next page, as the owner's, which is a tenant or OPERATOR."""
        previous_key = keys[-1] if keys else PrefixRoot(self._model_name, owner, sequence.adapter).key()
        start = len(keys) * self._pool.page_size
        keys.append(page_key(previous_key, sequence.token_ids[start : start + self._pool.page_size]))
