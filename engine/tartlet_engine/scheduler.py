"""Who takes part in the next step, and with how many tokens. Pure Python.

Tenants take turns: the one that is charged least, what this step will cost it included, takes its next bite
(`fairness.py`, `turns.py`). So a long prompt holds up neither the prompts nor the decodes of others.

Pages are reserved here, for all of a prompt before its first chunk, so that what has begun can be computed. What finds
too few pages waits.
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
    breaches: list[RunLimitError] = field(default_factory=list)  # at most one a run
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
        self, pool: PagePool, max_batch_tokens: int, shares: FairShares, prefix_cache: PrefixCache | None = None
    ) -> None:
        """Plan steps of at most `max_batch_tokens` tokens, over the pages of `pool`, for tenants with these shares."""
        if max_batch_tokens < 1:
            raise ValueError(f"a step needs at least one token, got max_batch_tokens={max_batch_tokens}")
        self._pool = pool
        self._max_batch_tokens = max_batch_tokens
        self._shares = shares
        self._prefix_cache = prefix_cache
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
        plan.active = [turns.share for turns in tenants]
        plan.backlogged = [turns.share for turns in tenants if turns.is_backlogged]
        return plan

    def _admit(self, plan: StepPlan, sequence: Sequence) -> bool:
        """Reserve the pages of all that the sequence has to compute, unless it must wait or its run may hold no more.

        Pages that the prefix cache has of it need not be computed. All of a prompt must fit before it is begun: half of
        it would only keep pages from others.
        """
        sequence.is_waiting = False
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
        if num_new_pages > self._pool.num_available:
            if start > before:
                sequence.uncompute(before)  # what waits must not keep cached pages from those that could go on
            sequence.is_waiting = True
            plan.waiting.append(sequence)
            return False
        copy = page_table.reserve(start, end)
        if copy is not None:
            plan.page_copies.append(copy)
        if self._prefix_cache is not None and start > before:
            self._prefix_cache.note_found(sequence, start - before)
        return True

    def _is_computed_by_another(self, sequence: Sequence) -> bool:
        """Tell whether the next page of a prompt is computed in this step already, for another sequence."""
        cache = self._prefix_cache
        return cache is not None and not sequence.is_decoding and cache.is_claimed(sequence)
