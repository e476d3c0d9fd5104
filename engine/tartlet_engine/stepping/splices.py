"""Carries out what a program has answered: which splice counts, what is dropped, what is appended."""

from __future__ import annotations

import time
from collections.abc import Sequence as Seq

from tartlet_engine.accounts import RunLimitError
from tartlet_engine.api import FinishReason, PositionLogprobs, Splice, StepAnswer, Stepped
from tartlet_engine.commits import Commits
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.fairness import DECODE_COST
from tartlet_engine.generation import Generation
from tartlet_engine.sampler import Sampled
from tartlet_engine.stop import StopStep

_NO_SPLICE = Splice()


class StepCommits:
    """Ends the steps of stepped generations. On the engine's thread."""

    def __init__(self, contexts: ContextTable, demands: Demands, commits: Commits) -> None:
        """Change `contexts`, tell `demands`, and count tokens in `commits`."""
        self._contexts = contexts
        self._demands = demands
        self._commits = commits

    def carry_out(self, generation: Generation, sampled: Sampled | None) -> bool:
        """Carry out a generation's answer, with the token that it has sampled, if it samples.

        Sampled tokens are charged here, forced ones when they are computed, as a prompt's tokens are. All count as
        generated ones of the run.

        Returns: whether the generation goes on with other tokens than before, whose logits are to be computed.
        """
        steps, sequence, account = generation.steps, generation.sequence, generation.sequence.account
        assert steps is not None
        answer = steps.take_answer()
        splice = _splice_of(answer, None if sampled is None else sampled.token_id)
        keeps_sampled = sampled is not None and splice.backtrack == 0
        if sampled is not None:
            try:
                account.require_token()
            except RunLimitError as breach:
                self._demands.stop_run(breach)
                return False
            account.share.charge(DECODE_COST)
            if not keeps_sampled:
                self._commits.count(account)
                generation.note_replaced(time.monotonic_ns())
        num_back = num_dropped_before(splice, samples=sampled is not None)
        text_backtrack = self._go_back(generation, num_back)
        appended: list[int] = []
        texts: list[str] = []
        stop: StopStep | None = None
        breach_of: RunLimitError | None = None
        kept = (sampled.token_id,) if sampled is not None and keeps_sampled else ()
        for index, token_id in enumerate((*kept, *splice.token_ids)):
            is_sampled = index < len(kept)
            try:
                account.require_token()
            except RunLimitError as error:
                breach_of = error
                break
            self._commits.count(account)
            stop = generation.accept(token_id, time.monotonic_ns(), is_sampled=is_sampled)
            generation.num_forced += not is_sampled
            steps.note(stop.text, generation.text_state)
            appended.append(token_id)
            texts.append(stop.text)
            if stop.finish_reason is not None:
                break
        sequence.is_fresh = False
        if generation.matcher is not None and (appended or num_back):
            generation.matcher.move(num_back, appended)
        self._tell(generation, sampled, num_back, text_backtrack, appended, texts, stop)
        if breach_of is not None:
            self._demands.stop_run(breach_of)
            return False
        if stop is not None and stop.finish_reason is not None:
            self._demands.finish(generation, stop.finish_reason, stop.stop_string)
            return False
        return bool(appended or num_back)

    def complete(self, generation: Generation) -> None:
        """End a generation that was to sample, though its constraint allows nothing more."""
        text, reason = generation.rest_of_text(), FinishReason.COMPLETE
        self._demands.events.append(Stepped(generation.generation_id, (), text, finish_reason=reason))
        self._demands.finish(generation, reason)

    def _go_back(self, generation: Generation, num_tokens: int) -> int:
        """Drop a sequence's last tokens. Returns how many characters of the generation's text are taken back."""
        if num_tokens == 0:
            return 0
        sequence, steps = generation.sequence, generation.steps
        assert steps is not None
        length = len(sequence.token_ids) - num_tokens
        dropped = sequence.token_ids[length:]
        num_generated = min(num_tokens, len(sequence.token_ids) - steps.first_token)
        state, num_characters = steps.go_back(length)
        self._contexts.cut(sequence, length)
        self._demands.complete_flushes(sequence)
        generation.note_dropped(dropped, num_generated, state)
        return num_characters

    def _tell(
        self,
        generation: Generation,
        sampled: Sampled | None,
        num_back: int,
        text_backtrack: int,
        appended: Seq[int],
        texts: Seq[str],
        stop: StopStep | None,
    ) -> None:
        finish_reason: FinishReason | None = None if stop is None else stop.finish_reason
        logprobs: PositionLogprobs | None = None if sampled is None else sampled.logprobs
        assert generation.steps is not None
        generation.steps.told_ns = time.monotonic_ns()
        self._demands.events.append(
            Stepped(
                generation.generation_id,
                tuple(appended),
                "".join(texts),
                None if sampled is None else sampled.token_id,
                num_back,
                text_backtrack,
                logprobs,
                finish_reason,
            )
        )


def num_dropped_before(splice: Splice, *, samples: bool) -> int:
    """Return how many of the tokens that were there before the step a splice drops."""
    return max(0, splice.backtrack - samples)


def _splice_of(answer: StepAnswer, sampled_id: int | None) -> Splice:
    """Return the splice that counts: the first whose condition holds."""
    for splice in answer.splices:
        if not splice.when_sampled or sampled_id in splice.when_sampled:
            return splice
    return _NO_SPLICE
