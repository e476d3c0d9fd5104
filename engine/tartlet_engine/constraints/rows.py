"""Constrained generations in a step: forced tokens are appended before it, masks are there after it.

A mask that takes long delays its own generation only: the logits are kept, and sampled in a later step. Nothing that
comes out depends on when masks are ready.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from tartlet_engine.api import EngineError, ErrorCode
from tartlet_engine.commits import Commits
from tartlet_engine.demands import Demands
from tartlet_engine.fairness import CONSTRAINT_COST
from tartlet_engine.generation import Generation
from tartlet_engine.sequence import Sequence

# How long a step waits for all constrained generations together: for what is forced before it, for masks after it.
FORCED_GRACE_S = 0.001
MASK_GRACE_S = 0.003
# How long it waits if there is nothing else to do.
IDLE_WAIT_S = 0.02


class ConstrainedRows:
    """Lets generations follow their constraints. On the engine's thread."""

    def __init__(self, demands: Demands, commits: Commits) -> None:
        """Append what is forced through `commits`, and tell `demands` of failures."""
        self._demands = demands
        self._commits = commits

    def append_forced(self, sequences: Iterable[Sequence]) -> None:
        """Append what is forced, before a step is planned, so that it is computed with what comes before it."""
        deadline = time.monotonic() + FORCED_GRACE_S
        for sequence in list(sequences):
            generation = sequence.generation
            if generation is None or generation.matcher is None or generation.steps is not None:
                continue
            if generation.matcher.wait_forced(max(0.0, deadline - time.monotonic())):
                self._follow(generation)

    def ready(self, generations: list[Generation], *, is_idle: bool) -> list[Generation]:
        """Return those of the generations that can be sampled now, with their masks set.

        Args:
            generations: those whose logits are there.
            is_idle: there is nothing else to do, so it waits longer if none can.
        """
        deadline = time.monotonic() + MASK_GRACE_S
        ready, late = self._sort(generations, deadline)
        if late and is_idle and not ready:
            ready, late = self._sort(late, time.monotonic() + IDLE_WAIT_S)
        for generation in late:
            sequence = generation.sequence
            if sequence.logits is not None:
                sequence.logits = sequence.logits.clone()  # of its own: the step's logits do not stay
        return ready

    def _sort(self, generations: list[Generation], deadline: float) -> tuple[list[Generation], list[Generation]]:
        ready, late = [], []
        for generation in generations:
            matcher = generation.matcher
            if matcher is None:
                ready.append(generation)
            elif not matcher.wait_mask(max(0.0, deadline - time.monotonic())):
                late.append(generation)
            elif generation.steps is not None:
                ready.append(generation)  # its program decides what is appended: `SteppedRows.masked`
            elif self._follow(generation):
                generation.sampling_row.mask = matcher.mask
                ready.append(generation)
        return ready, late

    def _follow(self, generation: Generation) -> bool:
        """Append what is forced, and end the generation if it cannot go on. Tells whether its logits still count."""
        matcher = generation.matcher
        assert matcher is not None
        generation.sequence.account.share.charge(matcher.take_work_ns() * CONSTRAINT_COST)
        if generation.sequence.account.is_stopped:
            return False
        forced = matcher.take_forced()
        if forced and not self._commits.forced(generation, forced):
            return False
        if matcher.problem is not None:
            message = f"the constraint allows nothing more after {generation.num_generated:,} tokens: {matcher.problem}"
            hint = "Make the constraint simpler, or allow an end where it stops."
            self._demands.fail(generation.sequence, EngineError(ErrorCode.INVALID_ARGUMENT, message, hint))
            return False
        if matcher.is_complete:
            self._commits.complete(generation)
            return False
        return not forced
