"""What a step adds to a generation: tokens are accounted for, appended, told of, and may be the last ones."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tartlet_engine.accounts import RunAccount, RunLimitError
from tartlet_engine.api import Chunk, FinishReason, PositionLogprobs, TokenLogprob
from tartlet_engine.demands import Demands
from tartlet_engine.fairness import DECODE_COST
from tartlet_engine.generation import Generation
from tartlet_engine.sampler import Sampled


class Commits:
    """Appends tokens to generations. On the engine's thread."""

    def __init__(self, demands: Demands) -> None:
        """Tell `demands` what comes of it."""
        self._demands = demands
        self.num_tokens = 0  # appended so far

    def count(self, account: RunAccount) -> None:
        """Count a token that a generation of the run has got."""
        account.num_generated_tokens += 1
        self.num_tokens += 1

    def sampled(self, generation: Generation, sampled: Sampled) -> None:
        """Append a sampled token, and end the generation if it was the last."""
        if not self._append(generation, (sampled.token_id,), () if sampled.logprobs is None else (sampled.logprobs,)):
            return
        if generation.matcher is not None:
            generation.matcher.advance(sampled.token_id)

    def forced(self, generation: Generation, token_ids: Sequence[int]) -> bool:
        """Append tokens that the constraint forces. Tells whether the generation goes on.

        They are charged when they are computed, as a prompt's tokens are. Each has the probability 1.
        """
        logprobs: tuple[PositionLogprobs, ...] = ()
        if (count := generation.sampling_row.num_logprobs) is not None:
            certain = [TokenLogprob(token_id, 0.0) for token_id in token_ids]
            logprobs = tuple(PositionLogprobs(each, (each,) * min(1, count)) for each in certain)
        return self._append(generation, token_ids, logprobs, is_forced=True)

    def _append(
        self,
        generation: Generation,
        token_ids: Sequence[int],
        logprobs: tuple[PositionLogprobs, ...],
        *,
        is_forced: bool = False,
    ) -> bool:
        """Append tokens up to the last one. Tells whether the generation goes on."""
        account = generation.sequence.account
        texts: list[str] = []
        num_appended = 0
        breach: RunLimitError | None = None
        stop = None
        for token_id in token_ids:
            try:
                account.require_token()
            except RunLimitError as error:
                breach = error
                break
            self.count(account)
            if is_forced:
                generation.num_forced += 1
            else:
                account.share.charge(DECODE_COST)
            num_appended += 1
            stop = generation.accept(token_id, time.monotonic_ns())
            texts.append(stop.text)
            if stop.finish_reason is not None:
                break
        generation.sequence.is_fresh = False
        if num_appended:
            appended = tuple(token_ids[:num_appended])
            text = "".join(texts)
            self._demands.events.append(Chunk(generation.generation_id, appended, text, logprobs[:num_appended]))
        if breach is not None:
            self._demands.stop_run(breach)
            return False
        if stop is not None and stop.finish_reason is not None:
            self._demands.finish(generation, stop.finish_reason, stop.stop_string)
            return False
        return True

    def complete(self, generation: Generation) -> None:
        """End a generation whose constraint allows nothing more."""
        if text := generation.rest_of_text():
            self._demands.events.append(Chunk(generation.generation_id, (), text))
        self._demands.finish(generation, FinishReason.COMPLETE)
