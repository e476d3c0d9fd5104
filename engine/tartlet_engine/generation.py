"""One generation: what it has sampled, its text, and what it has used."""

from __future__ import annotations

import copy
from collections.abc import Sequence as Seq

import msgspec

from tartlet_engine.api import Generate, Usage
from tartlet_engine.constraints.matcher import Matcher
from tartlet_engine.constraints.vocabulary import Words
from tartlet_engine.drafter import Drafter
from tartlet_engine.logits import LogitsProcessor, needs_processor
from tartlet_engine.sampler import SamplingRow
from tartlet_engine.sequence import Sequence
from tartlet_engine.stepping.state import StepState
from tartlet_engine.stop import StopDecider, StopStep, TextState


class Generation:
    """A generation on a sequence, from the command's arrival to its end."""

    def __init__(
        self,
        command: Generate,
        sequence: Sequence,
        decider: StopDecider,
        arrived_ns: int,
        matcher: Matcher | None = None,
        allowed: Words | None = None,
        steps: StepState | None = None,
    ) -> None:
        """Begin with a validated command.

        Args:
            command: what is asked for.
            sequence: what it runs on.
            decider: when it ends.
            arrived_ns: when the command was submitted, on the monotonic clock.
            matcher: follows its constraint, if it has one.
            allowed: the mask that all of it is sampled under, which the matcher knows of; None: all tokens.
            steps: it goes on only as its program answers.
        """
        self.generation_id = command.generation_id
        self.sequence = sequence
        self.prompt_len = len(sequence.token_ids)
        self.cached_tokens: int | None = None  # set when it first takes part in a step
        self.num_generated = 0
        self.num_forced = 0  # of these, tokens that the constraint forced
        self.ends_with_sampled = False  # its last token was sampled, and not forced
        self.matcher = matcher
        self.allowed = allowed
        self.steps = steps
        self.is_parked = False  # it is computed, and out of the batch until its program answers
        processor = LogitsProcessor(command.sampling, sequence.token_ids) if needs_processor(command.sampling) else None
        self.sampling_row = SamplingRow(command.sampling, 0, processor, command.num_logprobs, allowed)
        self.speculation = command.speculation
        self.drafter: Drafter | None = None  # made when it first drafts
        self.num_drafted = 0
        self.num_accepted = 0  # of these, tokens that were generated
        self._decider = decider
        self._arrived_ns = arrived_ns
        self._first_token_ns = 0

    @property
    def is_at_last_token(self) -> bool:
        """Tell whether it ends with the next token, whatever that is."""
        return self.tokens_left <= 1

    @property
    def tokens_left(self) -> int:
        """How many more tokens it may get."""
        return self._decider.tokens_left

    def note_cached(self, num_tokens: int) -> None:
        """Note, when first it takes part in a step, how many of the prompt's tokens were computed already."""
        if self.cached_tokens is None:
            self.cached_tokens = num_tokens

    def note_found(self, num_tokens: int) -> None:
        """Note that after its first step, more of the prompt was found in the prefix cache."""
        if self.cached_tokens is not None and self.num_generated == 0:
            self.cached_tokens += num_tokens

    def accept(self, token_id: int, now_ns: int, *, is_sampled: bool = True) -> StopStep:
        """Append a token to the sequence, and decide whether it was the last."""
        if self.num_generated == 0:
            self._first_token_ns = now_ns
        self.num_generated += 1
        self.sampling_row.token_index += 1
        if self.sampling_row.processor is not None:
            self.sampling_row.processor.note(token_id)
        self.sequence.append((token_id,))
        self.ends_with_sampled = is_sampled
        return self._decider.feed(token_id)

    def note_replaced(self, now_ns: int) -> None:
        """Count a sampled token that is not appended."""
        if self.num_generated == 0:
            self._first_token_ns = now_ns
        self.num_generated += 1
        self.sampling_row.token_index += 1

    @property
    def text_state(self) -> TextState:
        """Where its text is, to go back to."""
        return self._decider.state

    def note_dropped(self, token_ids: Seq[int], num_generated: int, state: TextState) -> None:
        """Take back tokens that were dropped from the sequence's end.

        Args:
            token_ids: these.
            num_generated: so many of them, the last, came with the generation; the others were there before it.
            state: where its text was before.
        """
        self._decider.go_back(state, len(token_ids))
        self.ends_with_sampled = False
        if (processor := self.sampling_row.processor) is not None:
            first_generated = len(token_ids) - num_generated
            for index, token_id in enumerate(token_ids):
                processor.forget(token_id, was_generated=index >= first_generated)

    def fork(self, generation_id: int, sequence: Sequence, seed: int | None, arrived_ns: int) -> Generation:
        """Return a stepped generation on a fork of the sequence, which is as far as this one, but has used nothing."""
        assert self.steps is not None
        other = copy.copy(self)
        other.generation_id, other.sequence = generation_id, sequence
        other.prompt_len, other.cached_tokens = len(sequence.token_ids), None
        other.num_generated = other.num_forced = 0
        other.ends_with_sampled = other.is_parked = False
        other.steps = self.steps.fork()
        other.sampling_row = self._row_of_fork(seed)
        other.matcher = None if self.matcher is None else self.matcher.fork()
        other._decider = self._decider.copy()
        other._arrived_ns, other._first_token_ns = arrived_ns, 0
        return other

    def _row_of_fork(self, seed: int | None) -> SamplingRow:
        row = self.sampling_row
        sampling = row.sampling if seed is None else msgspec.structs.replace(row.sampling, seed=seed)
        processor = None if row.processor is None else row.processor.copy()
        return SamplingRow(sampling, row.token_index, processor, row.num_logprobs, self.allowed)

    def rest_of_text(self) -> str:
        """Return the text that was held back, when the generation ends for a reason of its own."""
        return self._decider.flush()

    def usage(self, now_ns: int) -> Usage:
        """Return what has been used up to now."""
        page_table = self.sequence.page_table
        return Usage(
            prompt_tokens=self.prompt_len,
            cached_tokens=min(self.cached_tokens or 0, self.prompt_len),  # forced tokens may have been found, too
            generated_tokens=self.num_generated,
            pages=min(len(page_table.page_ids), -(-self.sequence.num_computed // page_table.page_size)),
            shared_pages=page_table.num_shared,
            first_token_ns=max(0, self._first_token_ns - self._arrived_ns) if self.num_generated else 0,
            total_ns=now_ns - self._arrived_ns,
            forced_tokens=self.num_forced,
            draft_tokens=self.num_drafted,
            accepted_tokens=self.num_accepted,
        )
