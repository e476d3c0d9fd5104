"""Who takes part in the next step, and with how many tokens. Pure Python.

Tenants take turns: the one that is charged least, what this step will cost it included, takes its next bite
(`fairness.py`, `turns.py`). So a long prompt holds up neither the prompts nor the decodes of others.

Pages are reserved here, for all of a prompt before its first chunk, so that what has begun can be computed. Where there
are too few, room is made if others must stand back (`preemption.py`); else the sequence waits.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from tartlet_engine.accounts import RunLimitError
from tartlet_engine.fairness import FairShares, TenantShare
from tartlet_engine.page_table import PageCopy
from tartlet_engine.pages import PagePool
from tartlet_engine.preemption import Preemption
from tartlet_engine.prefix_cache import PrefixCache
from tartlet_engine.sequence import Sequence
from tartlet_engine.turns import sort_turns

# While several tenants want something of a step, each takes its prompts' tokens in bites of this part of the budget.
BITE = 1 / 8


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive tokens of one sequence that a step computes."""

    sequence: Sequence
    start: int
    num_tokens: int

    @property
    def end(self) -> int:
        """The position after the last one computed."""
        return self.start + self.num_tokens

    @property
    def wants_logits(self) -> bool:
        """Tell whether the chunk ends with the sequence's last token, after which something is sampled or kept."""
        return self.end == len(self.sequence.token_ids)


@dataclass(slots=True)
class StepPlan:
    """What a step computes, and what could not take part."""

    num_planned: dict[Sequence, int] = field(default_factory=dict)  # tokens, of those that take part
    page_copies: list[PageCopy] = field(default_factory=list)
    waiting: list[Sequence] = field(default_factory=list)  # for pages
    stuck: Sequence | None = None  # nothing takes part: this is the one that was to, and found no room either
    breaches: list[RunLimitError] = field(default_factory=list)  # at most one a run
    num_obtainable_pages: int = 0  # that it could have
    num_tokens: int = 0
    active: list[TenantShare] = field(default_factory=list)  # tenants that want something to be computed
    backlogged: list[TenantShare] = field(default_factory=list)  # of these, those that did not get all of it

    @property
    def chunks(self) -> list[Chunk]:
        """What the step computes, of each sequence that takes part."""
        return [Chunk(sequence, sequence.num_computed, count) for sequence, count in self.num_planned.items()]

    def add(self, sequence: Sequence, num_tokens: int) -> None:
        """Let the sequence take part with so many tokens, or so many more."""
        self.num_planned[sequence] = self.num_planned.get(sequence, 0) + num_tokens
        self.num_tokens += num_tokens


class Scheduler:
    """Plans steps under a token budget."""

    def __init__(
        self,
        pool: PagePool,
        max_batch_tokens: int,
        shares: FairShares,
        prefix_cache: PrefixCache | None = None,
        preemption: Preemption | None = None,
    ) -> None:
        """Plan steps.

        Args:
            pool: where pages are.
            max_batch_tokens: of one step, at most.
            shares: the tenants'.
            prefix_cache: finds pages of prompts; without it, all of them are computed.
            preemption: makes room in the pool; without it, what finds too few pages waits.
        """
        if max_batch_tokens < 1:
            raise ValueError(f"a step needs at least one token, got max_batch_tokens={max_batch_tokens}")
        self._pool = pool
        self._max_batch_tokens = max_batch_tokens
        self._shares = shares
        self._prefix_cache = prefix_cache
        self._preemption = preemption
        self._pinned: list[int] = []  # sources of copies
        self._bite = max(1, int(BITE * max_batch_tokens))

    def plan(self, sequences: Iterable[Sequence], step: int) -> StepPlan:
        """Choose chunks, reserve their pages, and mark who waits for pages.

        Args:
            sequences: those with demands.
            step: the step's number, greater than any before.

        Cost: O(n log n) in the sequences that have something to compute.
        """
        plan = StepPlan()
        if self._prefix_cache is not None:
            self._prefix_cache.begin_step()
        if self._preemption is not None:
            self._preemption.begin_step()
        tenants = sort_turns(sequences, self._max_batch_tokens)
        self._shares.begin_step(turns.share for turns in tenants)
        # The number makes entries comparable; at the same charge, who was served longest ago goes first.
        number = itertools.count()
        heap = [(turns.charged, turns.share.last_served_step, next(number), turns) for turns in tenants]
        heapq.heapify(heap)
        while heap and plan.num_tokens < self._max_batch_tokens:
            *_, turns = heapq.heappop(heap)
            if (sequence := turns.choose()) is None:
                continue
            if sequence not in plan.num_planned and self._is_computed_by_another(sequence):
                turns.skip()
            elif sequence in plan.num_planned or self._admit(plan, sequence):
                start = sequence.num_computed + plan.num_planned.get(sequence, 0)
                room = self._max_batch_tokens - plan.num_tokens
                wanted = sequence.num_computed + sequence.num_to_compute - start
                num_tokens = min(wanted, room, self._bite if heap or turns.has_two_lines else room)
                if self._prefix_cache is not None and not sequence.is_decoding:
                    self._prefix_cache.claim(sequence, start, start + num_tokens)
                plan.add(sequence, num_tokens)
                turns.take(num_tokens, step, is_last=num_tokens == wanted)
            else:
                turns.put_back()
            heapq.heappush(heap, (turns.charged, turns.share.last_served_step, next(number), turns))
        if plan.waiting and not plan.num_planned and self._preemption is not None:
            self._admit_strongest(plan, self._preemption, step)
        plan.active = [turns.share for turns in tenants]
        plan.backlogged = [turns.share for turns in tenants if turns.is_backlogged]
        return plan

    def _admit(self, plan: StepPlan, sequence: Sequence, is_last_resort: bool = False) -> bool:
        """Reserve the pages of all that the sequence has to compute, unless it must wait or its run may hold no more.

        Pages that the prefix cache has of it need not be computed. All of a prompt must fit before it is begun: half of
        it would only keep pages from others.
        """
        page_table, before = sequence.page_table, sequence.num_computed
        try:
            if self._prefix_cache is not None and not sequence.is_decoding:
                self._prefix_cache.take(sequence)
            start, end = sequence.num_computed, sequence.num_computed + sequence.num_to_compute
            num_new_pages = page_table.num_new_pages(start, end)
            sequence.account.require_pages(num_new_pages)
        except RunLimitError as breach:
            if all(breach.account is not earlier.account for earlier in plan.breaches):
                plan.breaches.append(breach)
            return False
        num_swapped = page_table.num_swapped
        if not self._has_room(plan, sequence, num_swapped + num_new_pages, is_last_resort):
            if start > before:
                sequence.uncompute(before)  # what waits must not keep cached pages from those that could go on
            if is_last_resort and self._preemption is not None and self._preemption.part(sequence):
                return self._admit(plan, sequence, is_last_resort)  # it needs a page less now
            sequence.is_waiting = True
            plan.waiting.append(sequence)
            return False
        if num_swapped > 0 and self._preemption is not None:
            self._preemption.bring_back(sequence)
        copy = page_table.reserve(start, end)
        if copy is not None:
            plan.page_copies.append(copy)
            self._pool.share([copy.source_page_id])  # so that nobody else gets it before it is copied
            self._pinned.append(copy.source_page_id)
        if self._prefix_cache is not None and start > before:
            self._prefix_cache.note_found(sequence, start - before)
        sequence.is_fresh = sequence.is_fresh or sequence.is_waiting or not sequence.is_decoding
        sequence.is_waiting = False
        return True

    def _is_computed_by_another(self, sequence: Sequence) -> bool:
        """Tell whether the next page of a prompt is computed in this step already, for another sequence."""
        cache = self._prefix_cache
        return cache is not None and not sequence.is_decoding and cache.is_claimed(sequence)

    def finish(self) -> None:
        """Let go of the pages that the last plan has kept from others until its step was computed."""
        pinned, self._pinned = self._pinned, []
        for page_id in pinned:
            self._pool.release([page_id])

    def _has_room(self, plan: StepPlan, sequence: Sequence, num_pages: int, is_last_resort: bool) -> bool:
        if num_pages <= self._pool.num_available or self._preemption is None:
            return num_pages <= self._pool.num_available
        return self._preemption.make_room(sequence, num_pages, plan.num_planned, self._pinned, is_last_resort)

    def _admit_strongest(self, plan: StepPlan, preemption: Preemption, step: int) -> None:
        """Nothing can go on, so let one sequence go on, and all others stand back."""
        fitting = [s for s in plan.waiting if self._pool.pages_for(s.target_len) <= self._pool.num_pages]
        if not fitting:
            return
        strongest = preemption.claims.by_strength(fitting)[0]
        plan.waiting.remove(strongest)
        if self._admit(plan, strongest, is_last_resort=True):
            plan.add(strongest, min(strongest.num_to_compute, self._max_batch_tokens))
            strongest.last_served_step = strongest.account.share.last_served_step = step
        else:
            plan.stuck, plan.num_obtainable_pages = strongest, preemption.num_obtainable_pages
