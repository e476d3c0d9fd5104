"""One generation of the fake engine: a reply played byte by byte, with the stop conditions of a real one."""

from __future__ import annotations

import codecs
import time

from tartlet.testing.byte_text import END_OF_TURN
from tartlet.testing.fake_pages import FakeContext
from tartlet_engine.api import Chunk, FinishReason, Generate, PositionLogprobs, TokenLogprob


class FakeGeneration:
    """Give the reply's bytes as tokens, one a step, then the eos token."""

    def __init__(self, command: Generate, context: FakeContext, reply: str, context_len: int, num_cached: int) -> None:
        self.command = command
        self.context = context
        self.num_prompt = len(context.token_ids)
        self.num_cached = num_cached
        self.num_generated = 0
        self.is_cancelled = False
        self.first_token_ns = 0
        self.stop_string: str | None = None
        self._began_ns = time.monotonic_ns()
        self._reply = iter(reply.encode())
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held_text = ""  # could still become a stop string
        room = context_len - self.num_prompt
        self._max_tokens = room if command.stop.max_tokens is None else min(room, command.stop.max_tokens)

    @property
    def elapsed_ns(self) -> int:
        """Nanoseconds since it began."""
        return time.monotonic_ns() - self._began_ns

    def step(self) -> tuple[Chunk, FinishReason | None]:
        """Append one token to the context; says what it adds, and why it was the last one, if it was."""
        token_id = next(self._reply, END_OF_TURN)
        text, reason = self.take(token_id)
        logprobs = () if self.command.num_logprobs is None else (self._logprobs(token_id, self.command.num_logprobs),)
        return Chunk(self.command.generation_id, (token_id,), text, logprobs), reason

    def take(self, token_id: int) -> tuple[str, FinishReason | None]:
        """Append a token; the text that it sets free, and why it was the last one, if it was."""
        self.context.token_ids.append(token_id)
        self.num_generated += 1
        self.first_token_ns = self.first_token_ns or self.elapsed_ns
        return self._judge(token_id)

    def _judge(self, token_id: int) -> tuple[str, FinishReason | None]:
        """The text that the token sets free, and whether it ends the generation."""
        stop = self.command.stop
        is_stop_token = token_id in stop.token_ids
        if token_id == END_OF_TURN and not stop.ignore_eos:
            return self._flush(), FinishReason.STOP_TOKEN if is_stop_token else FinishReason.EOS
        if token_id < END_OF_TURN:
            self._held_text += self._decoder.decode(bytes([token_id]))
        found = [(self._held_text.find(text), text) for text in stop.strings if text in self._held_text]
        if found:
            position, self.stop_string = min(found)
            return self._held_text[:position], FinishReason.STOP_STRING
        if is_stop_token:
            return self._flush(), FinishReason.STOP_TOKEN
        if self.num_generated >= self._max_tokens:
            return self._flush(), FinishReason.LENGTH
        num_held = max((_overlap(self._held_text, text) for text in stop.strings), default=0)
        free, self._held_text = (
            self._held_text[: len(self._held_text) - num_held],
            self._held_text[len(self._held_text) - num_held :],
        )
        return free, None

    def _flush(self) -> str:
        return self._held_text + self._decoder.decode(b"", final=True)

    @staticmethod
    def _logprobs(token_id: int, num_top: int) -> PositionLogprobs:
        chosen = TokenLogprob(token_id, 0.0)
        return PositionLogprobs(chosen, (chosen,) * min(1, num_top))


def _overlap(text: str, stop: str) -> int:
    """How many characters at the text's end begin the stop string."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
