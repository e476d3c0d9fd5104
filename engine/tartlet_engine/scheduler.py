"""Who takes part in the next step, and with how many tokens. Pure Python.

Decodes come first, because someone reads along; prefill fills what is left of the token budget. Among decodes, those
served longest ago come first. Prefill takes turns between runs, so that a long prompt of one does not hold up the
others; within a run, it goes in the order of arrival.

Pages are reserved here, so a planned chunk can always be computed. What finds too few pages waits. Cached pages
are dropped for that. Preemption would come in where a chunk is refused for lack of pages (`_admit`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tartlet_engine.accounts import RunAccount, RunLimitError
from tartlet_engine.page_table import PageCopy
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence

# Part of the token budget that decodes leave to prefill, if both want all of it.
PREFILL_SHARE = 0.25


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

    chunks: list[Chunk] = field(default_factory=list)
    page_copies: list[PageCopy] = field(default_factory=list)
    waiting: list[Sequence] = field(default_factory=list)  # for pages
    breaches: list[RunLimitError] = field(default_factory=list)  # at most one a run
    num_tokens: int = 0


class Scheduler:
    """Plans steps under a token budget."""

    def __init__(self, pool: PagePool, max_batch_tokens: int) -> None:
        """Plan steps of at most `max_batch_tokens` tokens, over the pages of `pool`."""
        if max_batch_tokens < 1:
            raise ValueError(f"a step needs at least one token, got max_batch_tokens={max_batch_tokens}")
        self._pool = pool
        self._max_batch_tokens = max_batch_tokens

    def plan(self, sequences: Iterable[Sequence], step: int) -> StepPlan:
        """Choose chunks, reserve their pages, and mark who waits for pages.

        Args:
            sequences: those with demands.
            step: the step's number, greater than any before.

        Cost: O(n log n) in the sequences that have something to compute.
        """
        plan = StepPlan()
        decodes: list[Sequence] = []
        prefills: list[Sequence] = []
        for sequence in sequences:
            sequence.is_waiting = False
            if sequence.num_to_compute > 0:
                (decodes if sequence.is_decoding else prefills).append(sequence)
        decode_budget = self._max_batch_tokens
        if prefills:
            decode_budget -= int(PREFILL_SHARE * self._max_batch_tokens)
        decodes.sort(key=lambda sequence: (sequence.last_served_step, sequence.demand_order))
        for sequence in decodes[:decode_budget]:
            self._admit(plan, sequence, step)
        for sequence in _in_turns(prefills):
            if plan.num_tokens >= self._max_batch_tokens:
                break
            if self._admit(plan, sequence, step):
                sequence.account.last_prefill_step = step
        return plan

    def _admit(self, plan: StepPlan, sequence: Sequence, step: int) -> bool:
        """Add the sequence's next chunk to the plan, unless it must wait for pages or its run may hold no more."""
        start, remaining = sequence.num_computed, sequence.num_to_compute
        num_tokens = min(remaining, self._max_batch_tokens - plan.num_tokens)
        page_table = sequence.page_table
        try:
            sequence.account.require_pages(page_table.num_new_pages(start, start + num_tokens))
        except RunLimitError as breach:
            if all(breach.account is not earlier.account for earlier in plan.breaches):
                plan.breaches.append(breach)
            return False
        # All of a prompt must fit before more of it is begun: half of it would only keep pages from others.
        if page_table.num_new_pages(start, start + remaining) > self._pool.num_available:
            sequence.is_waiting = True
            plan.waiting.append(sequence)
            return False
        copy = page_table.reserve(start, start + num_tokens)
        if copy is not None:
            plan.page_copies.append(copy)
        sequence.last_served_step = step
        plan.chunks.append(Chunk(sequence, start, num_tokens))
        plan.num_tokens += num_tokens
        return True


def _in_turns(sequences: Iterable[Sequence]) -> list[Sequence]:
    """Order sequences by turns between their runs, the run whose last turn is longest ago first."""
    queues: dict[RunAccount, list[Sequence]] = {}
    for sequence in sorted(sequences, key=lambda sequence: sequence.demand_order):
        queues.setdefault(sequence.account, []).append(sequence)
    runs = sorted(queues, key=lambda account: account.last_prefill_step)
    longest = max(map(len, queues.values()), default=0)
    return [queues[run][turn] for turn in range(longest) for run in runs if turn < len(queues[run])]
