"""Moves pages of sequences that do not run out of the KV cache, and back before they run again.

A page leaves once, whoever shares it, and comes back once: its holders find it at the same place in their page tables.
Either its contents go to the swap space, or they are dropped, with all after them, to be computed again from the
tokens. Those of contexts from which tokens were evicted are never dropped.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping
from collections.abc import Sequence as Pages
from typing import TYPE_CHECKING

import torch

from tartlet_engine.contexts import ContextTable
from tartlet_engine.costs import Costs
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence
from tartlet_engine.swap import is_swapped

if TYPE_CHECKING:
    from tartlet_engine.model_runner import ModelRunner


class Pager:
    """Takes pages out and brings them back. On the engine's thread, between forward passes."""

    def __init__(self, pool: PagePool, contexts: ContextTable, runner: ModelRunner, costs: Costs) -> None:
        """Move pages of `contexts` between `pool`, whose contents `runner` has, and the pool's swap space."""
        self._pool = pool
        self._contexts = contexts
        self._runner = runner
        self._costs = costs

    @property
    def logits_device(self) -> torch.device:
        """Where the runner's logits are."""
        return self._runner.logits_device

    @property
    def page_bytes(self) -> int:
        """What a page's contents take."""
        return self._pool.swap.page_bytes

    @property
    def num_free_swap_pages(self) -> int:
        """Pages that still fit into the swap space."""
        return self._pool.swap.num_free

    def take_out(self, sequence: Sequence, num_pages: int, pinned: Container[int]) -> None:
        """Take so many pages of a sequence out of the pool, or as many as it has, the last first.

        Args:
            sequence: it does not run.
            num_pages: what is wanted.
            pinned: pages that a sequence which runs holds as well; they stay.
        """
        page_table, page_size = sequence.page_table, self._pool.page_size
        before = self._pool.num_available
        sequence.drop_lookahead()  # what is provisional, and pages that nothing has been written to
        num_pages -= self._pool.num_available - before
        page_ids = [page_id for page_id in page_table.page_ids if not is_swapped(page_id) and page_id not in pinned]
        page_ids = page_ids[max(0, len(page_ids) - num_pages) :] if num_pages > 0 else []
        if not page_ids:
            return
        first = page_table.page_ids.index(page_ids[0])
        num_tokens = sequence.num_computed - first * page_size
        num_bytes = len(page_ids) * self._pool.swap.page_bytes
        num_swapped = 0
        lasting = self._pages_that_must_last()
        # Recomputing in other batches gives other last bits, unless the runner says that it does not.
        if (
            not lasting.isdisjoint(page_ids)
            or not self._runner.is_batch_invariant
            or self._costs.is_swap_cheaper(num_bytes, num_tokens)
        ):
            num_swapped = min(len(page_ids), self._pool.swap.num_free)
        if dropped := [page_id for page_id in page_ids[num_swapped:] if page_id not in lasting]:
            self._drop(dropped)
        self._swap_out(page_ids[:num_swapped])

    def bring_back(self, sequence: Sequence, max_pages: int | None = None) -> None:
        """Bring a sequence's swapped pages, or so many of them, back into the pool, which must have room for them."""
        swapped_ids = [page_id for page_id in sequence.page_table.page_ids if is_swapped(page_id)][:max_pages]
        if not swapped_ids:
            return
        page_ids = self._pool.allocate(len(swapped_ids))
        contents = torch.stack([self._pool.swap.contents(page_id) for page_id in swapped_ids])
        began = time.monotonic()
        self._runner.write_pages(page_ids, contents)
        self._costs.note_copy(contents.nbytes, time.monotonic() - began)
        for swapped_id, page_id in zip(swapped_ids, page_ids, strict=True):
            self._pool.move_in(swapped_id, page_id)
        self._move(dict(zip(swapped_ids, page_ids, strict=True)))

    def put_into_swap(self, sequence: Sequence, contents: torch.Tensor) -> bool:
        """Let a sequence without pages have these, uint8[pages, page_bytes], in the swap space, if they fit there.

        Copies nothing: the contents must not change afterwards, and their memory is free when no page of them is left.
        """
        if len(contents) > self._pool.swap.num_free:
            return False
        sequence.page_table.hold_swapped([self._pool.swap.add(page, 1) for page in contents])
        return True

    def part(self, sequence: Sequence, index: int) -> bool:
        """Let the page at an index of the sequence's page table be its own, without a page for a copy.

        The others that hold it, which do not run, get one in the swap space, or drop theirs. Returns whether there were
        any, and the page is the sequence's own now.
        """
        if index >= len(sequence.page_table.page_ids) or not self._pool.is_shared(sequence.page_table.page_ids[index]):
            return False
        page_id = sequence.page_table.page_ids[index]
        others = [
            other
            for other in self._contexts.sequences.values()
            if other is not sequence and page_id in other.page_table.page_ids
        ]
        if not others or any(other.operation is not None for other in others):
            return False  # it is kept for what is published, or read or written between steps
        if self._pool.swap.num_free == 0 and any(other.gaps for other in others):
            return False
        if self._pool.swap.num_free > 0:
            swapped_id = self._pool.swap.add(self.read([page_id])[0], len(others))
            for other in others:
                other.page_table.rename({page_id: swapped_id})
            self._pool.release([page_id] * len(others))
        else:
            for other in others:
                other.drop_tail(index * self._pool.page_size)
        return not self._pool.is_shared(page_id)

    def read(self, page_ids: Pages[int]) -> torch.Tensor:
        """Return the contents of pages, swapped or not: uint8[len(page_ids), page_bytes]."""
        contents = torch.empty(len(page_ids), self._pool.swap.page_bytes, dtype=torch.uint8)
        resident = [index for index, page_id in enumerate(page_ids) if not is_swapped(page_id)]
        if resident:
            contents[resident] = self._runner.read_pages([page_ids[index] for index in resident])
        for index, page_id in enumerate(page_ids):
            if is_swapped(page_id):
                contents[index] = self._pool.swap.contents(page_id)
        return contents

    def write(self, page_ids: Pages[int], contents: torch.Tensor) -> None:
        """Write contents, uint8[len(page_ids), page_bytes], into pages of the pool."""
        self._runner.write_pages(page_ids, contents)

    def _pages_that_must_last(self) -> set[int]:
        """Return the pages of contexts from which tokens were evicted: what is left cannot be computed again."""
        gapped = (sequence for sequence in self._contexts.sequences.values() if sequence.gaps)
        return {page_id for sequence in gapped for page_id in sequence.page_table.page_ids}

    def _swap_out(self, page_ids: Pages[int]) -> None:
        if not page_ids:
            return
        began = time.monotonic()
        contents = self._runner.read_pages(page_ids)
        self._costs.note_copy(contents.nbytes, time.monotonic() - began)
        # Clones, so that each page's memory is free when that page comes back.
        moved = {
            page_id: self._pool.move_out(page_id, page_contents.clone())
            for page_id, page_contents in zip(page_ids, contents, strict=True)
        }
        self._move(moved)

    def _move(self, new_ids: Mapping[int, int]) -> None:
        """Put pages' new ids into all page tables. Cost: one pass over the page tables of all contexts."""
        for sequence in self._contexts.sequences.values():
            sequence.page_table.rename(new_ids)

    def _drop(self, page_ids: Pages[int]) -> None:
        """Drop pages, and what comes after them in any page table. Cost: as `_move`."""
        dropped = frozenset(page_ids)
        for sequence in self._contexts.sequences.values():
            held = sequence.page_table.page_ids
            if not dropped.isdisjoint(held):
                first = next(index for index, page_id in enumerate(held) if page_id in dropped)
                sequence.drop_tail(first * self._pool.page_size)
