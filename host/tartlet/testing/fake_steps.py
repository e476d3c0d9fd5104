"""One stepped generation of the fake engine: the reply's bytes come as its program lets them."""

from __future__ import annotations

import copy
import time

from tartlet.testing.byte_text import END_OF_TURN
from tartlet.testing.fake_generation import FakeGeneration
from tartlet.testing.fake_pages import FakeContext
from tartlet_engine.api import FinishReason, Generate, PositionLogprobs, Splice, StepAnswer, Stepped, TokenLogprob


class FakeSteps:
    """Sample the next byte of the reply in each step; if the step does not allow that, the first token that it does."""

    def __init__(self, command: Generate, context: FakeContext, reply: str, context_len: int) -> None:
        self.command = command
        self.context = context
        self.answer: StepAnswer | None = None
        self.num_prompt = self.num_cached = len(context.token_ids)
        self.num_generated = 0
        self.num_forced = 0
        self.first_token_ns = 0
        self.stop_string: str | None = None
        self._began_ns = time.monotonic_ns()
        self._begin_len = len(context.token_ids)  # where its own tokens begin
        self._reply = reply.encode()
        self._num_sampled = 0
        self._context_len = context_len
        self._shown = ""

    @property
    def elapsed_ns(self) -> int:
        """Nanoseconds since it began."""
        return time.monotonic_ns() - self._began_ns

    def refusal(self, answer: StepAnswer) -> str | None:
        """Why the answer cannot be carried out, if so."""
        for splice in answer.splices:
            num_back = max(0, splice.backtrack - answer.sample)
            if num_back > len(self.context.token_ids):
                return f"cannot go back {num_back:,} tokens: the context has {len(self.context.token_ids):,}"
        return None

    def step(self) -> Stepped:
        """Carry out the answer, but for pages."""
        answer, self.answer = self.answer, None
        assert answer is not None
        sampled = self._sample(answer) if answer.sample else None
        splice = next((s for s in answer.splices if not s.when_sampled or sampled in s.when_sampled), Splice())
        keeps = sampled is not None and splice.backtrack == 0
        num_back = max(0, splice.backtrack - answer.sample)
        before = self.context.token_ids[: len(self.context.token_ids) - num_back]
        self._begin_len = min(self._begin_len, len(before))
        added = ([sampled] if keeps and sampled is not None else []) + list(splice.token_ids)
        num_added, shown, reason = self._judge(before, added)
        added = added[:num_added]
        self.context.token_ids[:] = [*before, *added]
        self.num_forced += num_added - keeps
        self.num_generated += num_added + (answer.sample and not keeps)
        self.first_token_ns = self.first_token_ns or self.elapsed_ns
        common = next((i for i, (a, b) in enumerate(zip(self._shown, shown, strict=False)) if a != b), None)
        common = min(len(self._shown), len(shown)) if common is None else common
        text_backtrack, self._shown = len(self._shown) - common, shown
        return Stepped(
            self.command.generation_id,
            tuple(added),
            shown[common:],
            sampled,
            num_back,
            text_backtrack,
            self._logprobs(sampled),
            reason,
        )

    def fork(self, command: Generate, context: FakeContext) -> FakeSteps:
        """One that is as far as this one, on a fork of the context."""
        other = copy.copy(self)
        other.command, other.context = command, context
        other.num_prompt = other.num_cached = len(context.token_ids)
        other.num_generated = other.num_forced = 0
        return other

    def _sample(self, answer: StepAnswer) -> int:
        byte = self._reply[self._num_sampled] if self._num_sampled < len(self._reply) else END_OF_TURN
        self._num_sampled += 1
        return byte if answer.allow is None or byte in answer.allow else answer.allow[0]

    def _judge(self, before: list[int], added: list[int]) -> tuple[int, str, FinishReason | None]:
        """How many of the tokens are appended, the whole text then, and why it ends, if it does."""
        own = before[self._begin_len :]
        replayed = FakeGeneration(self.command, FakeContext(0, 0, before[: self._begin_len]), "", self._context_len, 0)
        shown, num_added = "", 0
        reason: FinishReason | None = None
        for index, token_id in enumerate([*own, *added]):
            text, reason = replayed.take(token_id)
            shown += text
            num_added = index + 1 - len(own)
            if reason is not None and num_added > 0:
                self.stop_string = replayed.stop_string
                break
        return max(0, num_added), shown, reason if num_added > 0 else None

    def _logprobs(self, sampled: int | None) -> PositionLogprobs | None:
        if sampled is None or self.command.num_logprobs is None:
            return None
        chosen = TokenLogprob(sampled, 0.0)
        return PositionLogprobs(chosen, (chosen,) * min(1, self.command.num_logprobs))
