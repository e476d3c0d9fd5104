"""The commands of stepped generations, on the engine's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet_engine import validation
from tartlet_engine.api import (
    AnswerStep,
    ErrorCode,
    ForkSteps,
    ModelInfo,
    StepAnswer,
    StepRefused,
)
from tartlet_engine.command_error import CommandError
from tartlet_engine.constraints.operations import ConstraintOperations
from tartlet_engine.constraints.vocabulary import Words, words_of
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.generation import Generation
from tartlet_engine.stepping.rows import SteppedRows
from tartlet_engine.stepping.splices import num_dropped_before


class StepOperations:
    """Takes answers in, and forks stepped generations."""

    def __init__(
        self,
        info: ModelInfo,
        contexts: ContextTable,
        demands: Demands,
        rows: SteppedRows,
        constraints: ConstraintOperations,
    ) -> None:
        """Hand the answers for generations of `demands` to `rows`; masks are of `constraints`."""
        self._info = info
        self._contexts = contexts
        self._demands = demands
        self._rows = rows
        self._constraints = constraints
        self.handlers: dict[type, Callable[[Any, int], None]] = {AnswerStep: self._answer, ForkSteps: self._fork}

    def _answer(self, command: AnswerStep, arrived_ns: int) -> None:
        generation = self._demands.generations.get(command.generation_id)
        if generation is None:
            return  # it has ended meanwhile
        try:
            self._require_waiting(generation)
            validation.check_step_answer(command.answer, self._info)
            self._check_room(generation, command.answer)
            allowed = self._allowed(generation, command.answer)
            boosts = [(self._mask(generation, mask_id), boost) for mask_id, boost in command.answer.boosts]
        except CommandError as error:
            self._demands.events.append(StepRefused(command.generation_id, error.error))
            return
        self._rows.patience.answered(generation, arrived_ns)
        self._rows.answer(generation, command.answer, allowed, boosts)

    def _fork(self, command: ForkSteps, arrived_ns: int) -> None:
        parent = self._demands.generations.get(command.generation_id)
        if parent is None:
            raise CommandError(ErrorCode.NOT_FOUND, f"there is no generation {command.generation_id}")
        self._require_waiting(parent)
        if parent.matcher is not None:
            self._constraints.require_matcher(parent.sequence.account)
        length = len(parent.sequence.token_ids)
        self._contexts.fork(parent.sequence, command.child_context_id, length)
        sequence = self._contexts.get(command.child_context_id)
        child = parent.fork(command.child_generation_id, sequence, command.seed, arrived_ns)
        if child.matcher is not None:
            child.sequence.account.share.matchers.add(child.matcher)
        self._demands.begin(child)
        if sequence.logits is not None:
            self._rows.park(child)

    def _require_waiting(self, generation: Generation) -> None:
        """Raise CommandError unless a generation waits for an answer."""
        if generation.steps is None:
            message = f"generation {generation.generation_id} is not stepped"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message, "Only stepped generations take answers.")
        if generation.steps.answer is not None:
            message = f"generation {generation.generation_id} has its answer, and its step is not done"
            raise CommandError(ErrorCode.UNAVAILABLE, message, "Wait for the outcome first.")

    def _allowed(self, generation: Generation, answer: StepAnswer) -> Words | None:
        """Return what an answer allows to be sampled, None for all. Raises CommandError if there is no such mask."""
        words = None
        if answer.allow is not None:
            words = words_of(answer.allow, self._info.vocabulary_size)
        if answer.mask_id is not None:
            mask = self._mask(generation, answer.mask_id)
            words = mask if words is None else words & mask
        return words

    def _mask(self, generation: Generation, mask_id: int) -> Words:
        """Return a mask of a generation's run. Raises CommandError if there is none by that id."""
        return self._constraints.masks.get(generation.sequence.account, mask_id)

    def _check_room(self, generation: Generation, answer: StepAnswer) -> None:
        """Raise CommandError unless each splice leaves a token at least, and not more than the model can have."""
        sequence, steps = generation.sequence, generation.steps
        assert steps is not None
        for splice in answer.splices or (None,):
            num_back = 0 if splice is None else num_dropped_before(splice, samples=answer.sample)
            keeps_sampled = answer.sample and (splice is None or splice.backtrack == 0)
            num_new = keeps_sampled + (0 if splice is None else len(splice.token_ids))
            if num_back > len(sequence.token_ids) or len(sequence.token_ids) - num_back + num_new < 1:
                message = f"cannot go back {num_back:,} tokens: the context has {len(sequence.token_ids):,}"
                raise CommandError(ErrorCode.INVALID_ARGUMENT, message, "A context must keep a token at least.")
            if generation.matcher is not None and num_back > len(sequence.token_ids) - steps.first_token:
                message = f"cannot go back {num_back:,} tokens: the constraint began after that"
                raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
            needed = sequence.next_position - num_back + num_new
            if needed > self._info.context_len:
                message = f"the context would have {needed:,} tokens; the model allows {self._info.context_len:,}"
                raise CommandError(ErrorCode.CONTEXT_OVERFLOW, message, "Go back, or end here.")
