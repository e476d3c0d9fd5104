"""Who takes part in the next step, and with how many tokens. Pure Python.

Tenants take turns: the one that is charged least, what this step will cost it included, takes its next bite
(`fairness.py`, `turns.py`). So a long prompt holds up neither the prompts nor the decodes of others.

What takes part needs pages (`admission.py`). If nothing can for want of them, the one with the strongest claim does,
and all others stand back.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable

from tartlet_engine.admission import Admission
from tartlet_engine.costs import Costs
from tartlet_engine.fairness import FairShares
from tartlet_engine.pages import PagePool
from tartlet_engine.preemption import Preemption
from tartlet_engine.prefix_cache import PrefixCache
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_budget import step_budget
from tartlet_engine.step_plan import StepPlan
from tartlet_engine.turns import TenantTurns, sort_turns

# While several tenants want something of a step, each takes its prompts' tokens in bites of this part of the budget.
BITE = 1 / 8


class Scheduler:
    """Plans steps under a token budget."""

    def __init__(
        self,
        pool: PagePool,
        max_batch_tokens: int,
        shares: FairShares,
        prefix_cache: PrefixCache | None = None,
        preemption: Preemption | None = None,
        costs: Costs | None = None,
    ) -> None:
        """Plan steps.

        Args:
            pool: where pages are.
            max_batch_tokens: of one step, at most.
            shares: the tenants'.
            prefix_cache: finds pages of prompts; without it, all of them are computed.
            preemption: makes room in the pool; without it, what finds too few pages waits.
            costs: what a token takes, so that steps that others wait for are shorter.
        """
        if max_batch_tokens < 1:
            raise ValueError(f"a step needs at least one token, got max_batch_tokens={max_batch_tokens}")
        self._pool = pool
        self._max_batch_tokens = max_batch_tokens
        self._shares = shares
        self._preemption = preemption
        self._admission = Admission(pool, prefix_cache, preemption)
        self._costs = costs or Costs()
        self._budget = max_batch_tokens  # of the step that is planned

    @property
    def max_batch_tokens(self) -> int:
        """The token budget of a step."""
        return self._max_batch_tokens

    def room(self, plan: StepPlan) -> int:
        """Return how many tokens the step that was planned last could have beyond its plan."""
        return max(0, self._budget - plan.num_tokens)

    def plan(self, sequences: Iterable[Sequence], step: int) -> StepPlan:
        """Choose chunks, reserve their pages, and mark who waits for pages.

        Args:
            sequences: those with demands.
            step: the step's number, greater than any before.

        Cost: O(n log n) in the sequences that have something to compute.
        """
        plan = StepPlan()
        sequences = list(sequences)
        self._admission.begin_step()
        tenants = sort_turns(sequences, self._max_batch_tokens)
        self._budget = step_budget(self._max_batch_tokens, self._costs, tenants)
        self._shares.begin_step(turns.share for turns in tenants)
        # The number makes entries comparable; at the same charge, who was served longest ago goes first.
        number = itertools.count()
        heap: list[tuple[float, int, int, TenantTurns]] = []
        for turns in tenants:
            heapq.heappush(heap, (turns.charged, turns.share.last_served_step, next(number), turns))
        self._admit_moving(plan, sequences)
        while heap and plan.num_tokens < self._budget:
            *_, turns = heapq.heappop(heap)
            while self._take_turn(plan, turns, step, is_alone=not heap):
                if heap:
                    heapq.heappush(heap, (turns.charged, turns.share.last_served_step, next(number), turns))
                    break
        if plan.waiting and not plan.num_planned and not plan.moving and self._preemption is not None:
            self._admit_strongest(plan, self._preemption, step)
        plan.active = [turns.share for turns in tenants]
        plan.backlogged = [turns.share for turns in tenants if turns.is_backlogged]
        return plan

    def finish(self) -> None:
        """Let go of what the last plan has kept from others until its step was computed."""
        self._admission.finish()

    def _admit_moving(self, plan: StepPlan, sequences: list[Sequence]) -> None:
        """Let those that wait for room alone have it, if they may: the strongest claim first, as they compute nothing.

        They come before those that compute, who could not give their pages in this step any more.
        """
        moving = [sequence for sequence in sequences if sequence.room is not None]
        if self._preemption is not None and len(moving) > 1:
            moving = self._preemption.claims.by_strength(moving)
        plan.moving += [sequence for sequence in moving if self._admission.admit(plan, sequence, is_decode=False)]

    def _take_turn(self, plan: StepPlan, turns: TenantTurns, step: int, is_alone: bool) -> bool:
        """Let a tenant take its next bite. Tells whether there was anything left that it could want."""
        room = self._budget - plan.num_tokens
        bite = max(1, int(BITE * self._budget))
        if room <= 0 or (sequence := turns.choose()) is None:
            return False
        num_planned = plan.num_planned.get(sequence, 0)
        if num_planned == 0 and not turns.is_decode and self._admission.is_computed_by_another(sequence):
            turns.skip()
        elif num_planned > 0 or self._admission.admit(plan, sequence, turns.is_decode):
            wanted = 1 if turns.is_decode else sequence.num_to_compute - num_planned
            most = room if is_alone and not turns.has_two_lines else min(bite, room)
            num_tokens = self._chunk_size(plan, sequence, wanted, most)
            if num_tokens == 0:
                turns.skip()
                return True
            self._add(plan, sequence, num_tokens)
            turns.take(num_tokens, step, is_last=num_tokens == wanted)
        else:
            turns.put_back()
        return True

    def _chunk_size(self, plan: StepPlan, sequence: Sequence, wanted: int, most: int) -> int:
        """Return how many of the tokens that a sequence wants it is given, where `most` may be given of a line.

        A tree is given as a whole: even if that is more than a step should have, but not more than it can; or not yet.
        """
        tree_size = 0 if sequence.lookahead is None else sequence.lookahead.tree_size
        if wanted <= most or tree_size == 0:
            return min(wanted, most)
        if wanted > tree_size:
            return min(wanted - tree_size, most)
        return wanted if plan.num_tokens + wanted <= self._max_batch_tokens else 0

    def _add(self, plan: StepPlan, sequence: Sequence, num_tokens: int) -> None:
        """Let the sequence compute so many tokens, or so many more."""
        if not sequence.is_decoding:
            start = sequence.num_filled + plan.num_planned.get(sequence, 0)
            num_own = min(num_tokens, len(sequence.token_ids) - start)
            if num_own > 0:  # nobody else finds what is provisional
                self._admission.claim(sequence, start, num_own)
        if sequence.lookahead is not None and sequence not in plan.num_planned:
            plan.num_tokens += sequence.lookahead.weight  # others wait for that as they do for tokens
        plan.add(sequence, num_tokens)

    def _admit_strongest(self, plan: StepPlan, preemption: Preemption, step: int) -> None:
        """Nothing can go on, so let one sequence go on, and all others stand back."""
        fitting = [s for s in plan.waiting if self._pool.pages_for(s.target_slots) <= self._pool.num_pages]
        if not fitting:
            return
        strongest = preemption.claims.by_strength(fitting)[0]
        plan.waiting.remove(strongest)
        if self._admission.admit(plan, strongest, strongest.is_decoding, is_last_resort=True):
            if (wanted := strongest.num_to_compute) > 0:
                self._add(plan, strongest, self._chunk_size(plan, strongest, wanted, self._max_batch_tokens))
            else:
                plan.moving.append(strongest)
            strongest.last_served_step = strongest.account.share.last_served_step = step
        else:
            plan.stuck, plan.num_obtainable_pages = strongest, preemption.num_obtainable_pages(strongest)
