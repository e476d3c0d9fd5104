"""Lets sequences take part in a step: finds pages of theirs, makes room for others, and reserves them. Pure Python.

Pages are reserved for all of a prompt before its first chunk, so that what has begun can be computed. Where there are
too few, room is made if others must stand back (`preemption.py`); else the sequence waits.
"""

from __future__ import annotations

from tartlet_engine.accounts import RunLimitError
from tartlet_engine.pages import PagePool
from tartlet_engine.preemption import Preemption
from tartlet_engine.prefix_cache import PrefixCache
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_plan import StepPlan


class Admission:
    """Admits sequences to one step after the other."""

    def __init__(self, pool: PagePool, prefix_cache: PrefixCache | None, preemption: Preemption | None) -> None:
        """Reserve pages of `pool`.

        Args:
            pool: where pages are.
            prefix_cache: finds pages of prompts; without it, all of them are computed.
            preemption: makes room in the pool; without it, what finds too few pages waits.
        """
        self._pool = pool
        self._prefix_cache = prefix_cache
        self._preemption = preemption
        self._pinned: list[int] = []  # sources of copies, and what a context that moves gets when the step is computed

    def begin_step(self) -> None:
        """Forget what held for the last step."""
        if self._prefix_cache is not None:
            self._prefix_cache.begin_step()
        if self._preemption is not None:
            self._preemption.begin_step()

    def admit(self, plan: StepPlan, sequence: Sequence, is_decode: bool, is_last_resort: bool = False) -> bool:
        """Reserve the pages of all that the sequence has to compute, unless it must wait or its run may hold no more.

        Pages that the prefix cache has of it need not be computed. All of a prompt must fit before it is begun: half of
        it would only keep pages from others.

        Args:
            plan: hears of copies to be made, of who waits, and of run limits.
            sequence: that is to take part in the step.
            is_decode: it computes a single token, the one sampled last.
            is_last_resort: nothing else takes part, so all others have to stand back.
        """
        page_table, before = sequence.page_table, sequence.num_filled
        if not is_decode and not is_last_resort and self._is_refused_at_once(sequence):
            sequence.is_waiting = True
            plan.waiting.append(sequence)
            return False
        try:
            if self._prefix_cache is not None and not is_decode and sequence.room is None:
                self._prefix_cache.take(sequence)
            start = sequence.num_filled
            end = start + (1 if is_decode else sequence.num_to_compute)
            num_new_pages = page_table.num_new_pages(start, end)
            sequence.account.require_pages(num_new_pages)
        except RunLimitError as breach:
            if all(breach.account is not earlier.account for earlier in plan.breaches):
                plan.breaches.append(breach)
            return False
        num_swapped = page_table.num_swapped
        num_pages = num_swapped + num_new_pages + sequence.num_extra_pages
        has_room = self._has_room(plan, sequence, num_pages, is_decode, is_last_resort)
        if not has_room and is_last_resort and self._preemption is not None and self._preemption.part(sequence):
            num_pages = num_swapped + page_table.num_new_pages(start, end) + sequence.num_extra_pages  # less now
            has_room = self._has_room(plan, sequence, num_pages, is_decode, is_last_resort)
        if not has_room:
            if start > before:
                sequence.uncompute(before)  # what waits must not keep cached pages from those that could go on
            sequence.is_waiting = True
            plan.waiting.append(sequence)
            return False
        num_extra_pages = sequence.num_extra_pages
        if num_swapped > 0 and self._preemption is not None:
            self._preemption.bring_back(sequence)
        self._pinned += self._pool.allocate(num_extra_pages)  # until the step is computed: then they are its own
        copy = page_table.reserve(start, end)
        if copy is not None:
            plan.page_copies.append(copy)
            self._pool.share([copy.source_page_id])  # so that nobody else gets it before it is copied
            self._pinned.append(copy.source_page_id)
        if self._prefix_cache is not None and start > before:
            self._prefix_cache.note_found(sequence, before)
        sequence.is_fresh = sequence.is_fresh or sequence.is_waiting or not is_decode
        sequence.is_waiting = False
        return True

    def is_computed_by_another(self, sequence: Sequence) -> bool:
        """Tell whether the next page of a prompt is computed in this step already, for another sequence."""
        return self._prefix_cache is not None and self._prefix_cache.is_claimed(sequence)

    def claim(self, sequence: Sequence, start: int, num_tokens: int) -> None:
        """Take note that the step computes so many tokens of a prompt, from the token `start` on."""
        if self._prefix_cache is not None:
            self._prefix_cache.claim(sequence, start, start + num_tokens)

    def finish(self) -> None:
        """Let go of the pages that the last plan has kept from others until its step was computed."""
        pinned, self._pinned = self._pinned, []
        for page_id in pinned:
            self._pool.release([page_id])

    def _is_refused_at_once(self, sequence: Sequence) -> bool:
        """Tell whether a prompt need not be looked at any further: one before it has found no room for less.

        Of many that wait, few then hold what is found of them, and let go of it, in every step.
        """
        if self._prefix_cache is None or self._preemption is None or not self._preemption.has_refused:
            return False
        num_pages = self._prefix_cache.num_missing_pages(sequence)
        return num_pages > self._pool.num_available and self._preemption.is_refused_at_once(sequence, num_pages)

    def _has_room(
        self, plan: StepPlan, sequence: Sequence, num_pages: int, is_decode: bool, is_last_resort: bool
    ) -> bool:
        if self._preemption is None or num_pages == 0:
            return num_pages <= self._pool.num_available
        if not is_decode and not is_last_resort and self._preemption.must_stand_back(sequence):
            return False
        return self._preemption.make_room(sequence, num_pages, plan.num_planned, self._pinned, is_last_resort)
