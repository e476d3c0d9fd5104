"""Stepped generations in a step: which of them can be sampled, and which wait for their program, out of the batch.

A token is computed in the step after it was appended, like any other. Then its logits are kept until the program's
answer is there, and sampled before the step after that is planned: a program that answers while the forward pass runs
costs no time, and one that is late delays its own row only. While it waits, its context is like one that nobody waits
for: its pages can be taken, and its logits, if many are kept; then they are computed again when the answer is there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from collections.abc import Sequence as Seq

import msgspec

from tartlet_engine.api import EngineError, ErrorCode, Sampling, StepAnswer, StepRefused
from tartlet_engine.commits import Commits
from tartlet_engine.constraints.vocabulary import Words
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.fairness import CONSTRAINT_COST
from tartlet_engine.generation import Generation
from tartlet_engine.logits import LogitsProcessor
from tartlet_engine.sampler import Sampled, SamplingRow
from tartlet_engine.sequence import Sequence
from tartlet_engine.stepping.patience import Patience
from tartlet_engine.stepping.splices import StepCommits

Boost = tuple[Words, float]
"""A mask, and what is added to the logits of all of its tokens."""

MOST_KEPT_BYTES = 1 << 28
"""Logits of generations that wait for their programs, all together."""


class SteppedRows:
    """The stepped generations, as far as steps concern them. On the engine's thread."""

    def __init__(self, contexts: ContextTable, demands: Demands, commits: Commits) -> None:
        """Let generations on `contexts` wait; what comes of their steps goes to `demands` through `commits`."""
        self._contexts = contexts
        self._demands = demands
        self._commits = StepCommits(contexts, demands, commits)
        self._answered: dict[Generation, None] = {}  # in the order of their answers
        self._lenders: list[Sequence] = []  # whose logits are rows of the last step's
        self.patience = Patience()

    @property
    def has_answers(self) -> bool:
        """Tell whether a step has something to sample."""
        return bool(self._answered)

    @property
    def answered_sequences(self) -> list[Sequence]:
        """The contexts of generations that have their answer."""
        return [generation.sequence for generation in self._answered if generation.sequence.generation is generation]

    def answer(
        self, generation: Generation, answer: StepAnswer, allowed: Words | None, boosts: Seq[Boost] = ()
    ) -> None:
        """Take in a validated answer: carry it out if it samples nothing, else in the next step.

        Args:
            generation: whose program has answered.
            answer: what it wants.
            allowed: what can be sampled, besides what the generation may; None: all.
            boosts: the answer's, with their masks.
        """
        steps = generation.steps
        assert steps is not None
        steps.answer = answer
        if answer.sample:
            steps.row, steps.allowed = _sampling_row(generation.sampling_row, answer, boosts), allowed
            if generation.matcher is None and not self._restrict(generation, generation.allowed):
                return
            self._answered[generation] = None
            if generation.sequence.logits is None:
                self._activate(generation)
        elif self._commits.carry_out(generation, None):
            self._activate(generation)

    def begin_waiting(self) -> None:
        """Choose whom the next step waits for: see `Patience`. For nobody if something of another kind has to go on."""
        self.patience.end()
        if self._answered and self.is_alone:
            waiting = [g for g in self._demands.generations.values() if g.steps is not None and g.steps.answer is None]
            if waiting:
                share = next(iter(self._answered)).sequence.account.share
                self.patience.begin([g for g in waiting if g.sequence.account.share is share], time.monotonic_ns())

    @property
    def is_alone(self) -> bool:
        """Tell whether a step concerns nothing but stepped generations, all of them of one tenant."""
        sequences = [*self._contexts.active.values(), *(generation.sequence for generation in self._answered)]
        are_stepped = all(s.generation is not None and s.generation.steps is not None for s in sequences)
        return are_stepped and len({s.account.share for s in sequences}) <= 1

    def take_answered(self) -> list[Generation]:
        """Return those that have their answer and whose logits are there. They stay until `sampled` or their end."""
        found = []
        for generation in list(self._answered):
            sequence = generation.sequence
            if sequence.generation is not generation:
                del self._answered[generation]  # it has ended
            elif sequence.logits is not None:
                found.append(generation)
            else:
                self._activate(generation)
        return found

    def answered_of(self, generations: Iterable[Generation]) -> tuple[list[Generation], bool]:
        """Return those of the generations, whose logits are there, that can go on; the others wait from now on.

        Tells whether any begins to wait.
        """
        found, has_parked = [], False
        for generation in generations:
            if generation.steps is None or generation in self._answered:
                found.append(generation)
            else:
                has_parked = has_parked or not generation.is_parked
                self.park(generation)
        return found, has_parked

    def masked(self, generations: list[Generation]) -> list[Generation]:
        """Return those of the generations that can be sampled, with the masks of their constraints, which are there.

        Answers are refused that leave nothing to sample; what its constraint has completed ends.
        """
        found = []
        for generation in generations:
            matcher = generation.matcher
            if generation.steps is None or matcher is None:
                found.append(generation)
                continue
            generation.sequence.account.share.charge(matcher.take_work_ns() * CONSTRAINT_COST)
            if matcher.problem is not None:
                message = f"the constraint allows nothing after {generation.num_generated:,} tokens: {matcher.problem}"
                self.refuse(generation, EngineError(ErrorCode.INVALID_ARGUMENT, message, "Go back, or end here."))
            elif matcher.is_complete:
                del self._answered[generation]
                self._commits.complete(generation)
            elif self._restrict(generation, matcher.mask):
                found.append(generation)
        return found

    def sampled(self, generation: Generation, sampled: Sampled) -> None:
        """Carry out an answer with the token that it has sampled."""
        del self._answered[generation]
        if self._commits.carry_out(generation, sampled):
            self._activate(generation)
        elif generation.sequence.generation is generation:
            self.park(generation)  # its tokens are what they were: so are its logits

    def refuse(self, generation: Generation, error: EngineError) -> None:
        """Give an answer back that cannot be carried out."""
        assert generation.steps is not None
        self._answered.pop(generation, None)
        generation.steps.take_answer()
        self._demands.events.append(StepRefused(generation.generation_id, error))
        if generation.sequence.logits is not None:
            self.park(generation)

    def park(self, generation: Generation) -> None:
        """Let a generation that is computed wait out of the batch."""
        if not generation.is_parked:
            generation.is_parked = True
            self._contexts.settle(generation.sequence)

    def lend_logits(self, sequence: Sequence) -> None:
        """Note that a sequence's logits are a row of this step's."""
        sequence.has_lent_logits = True
        self._lenders.append(sequence)

    def keep_lent_logits(self) -> None:
        """Copy the rows of the last step's logits that still wait, before another step; too many are given up.

        Not those of contexts from which tokens were evicted: their last token may have seen what is gone.
        """
        if not self._lenders:
            return
        for sequence in self._lenders:
            sequence.keep_logits()
        self._lenders.clear()
        kept = [g.sequence for g in self._demands.generations.values() if g.is_parked and g.sequence.logits is not None]
        num_bytes = sum(0 if sequence.logits is None else sequence.logits.nbytes for sequence in kept)
        for sequence in kept:
            if num_bytes <= MOST_KEPT_BYTES:
                break
            if sequence.logits is not None and not sequence.gaps:
                num_bytes -= sequence.logits.nbytes
                sequence.logits = None

    def _restrict(self, generation: Generation, allowed: Words | None) -> bool:
        """Set what a step samples from; its answer is refused if that is nothing, or else this tells that it is not."""
        steps = generation.steps
        assert steps is not None
        assert steps.row is not None
        mask = steps.allowed if allowed is None else allowed
        if steps.allowed is not None and allowed is not None:
            mask = steps.allowed & allowed
        if mask is not None and not mask.any():
            message = "the step allows no token that the generation may sample"
            self.refuse(generation, EngineError(ErrorCode.INVALID_ARGUMENT, message, "Allow others, or end here."))
            return False
        steps.row.mask = mask
        return True

    def _activate(self, generation: Generation) -> None:
        """Let a generation take part in steps until its logits are there."""
        generation.is_parked = False
        generation.sequence.demand_logits()
        self._contexts.activate(generation.sequence)


def row_of(generation: Generation) -> SamplingRow:
    """How a generation's next token is sampled."""
    steps = generation.steps
    return generation.sampling_row if steps is None or steps.row is None else steps.row


def _sampling_row(row: SamplingRow, answer: StepAnswer, boosts: Seq[Boost]) -> SamplingRow:
    """Return the row as the answer wants it, for this step only."""
    processor, sampling = row.processor, row.sampling
    if answer.bias or boosts:
        processor = (processor or LogitsProcessor(Sampling(seed=0), ())).biased(answer.bias, boosts)
    if answer.temperature is not None:
        sampling = msgspec.structs.replace(sampling, temperature=answer.temperature)
    return SamplingRow(sampling, row.token_index, processor, row.num_logprobs)
