"""The answer of `/v1/completions`: an object, or chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tartlet.errors import TartletError
from tartlet.server.front.openai.answers import Answer, Piece, TokenEntry
from tartlet.server.front.openai.shapes import DONE, About, data_event, error_event, usage_object
from tartlet.server.front.openai.token_text import completion_logprobs


class CompletionShape:
    """Writes completions. Implements `Shape`.

    Args:
        about: what stands in all parts.
        has_logprobs: they are asked for.
        include_usage: a stream ends with a chunk about usage.
    """

    def __init__(self, about: About, *, has_logprobs: bool, include_usage: bool) -> None:
        self._about = about
        self._has_logprobs = has_logprobs
        self._include_usage = include_usage

    def whole(self, answer: Answer) -> dict[str, Any]:
        """See `Shape`."""
        choices = [
            self._choice(index, choice.text, choice.logprobs, choice.finish)
            for index, choice in enumerate(answer.choices)
        ]
        return {**self._head(), "choices": choices, "usage": usage_object(answer.usage)}

    def opening(self) -> Iterator[str]:
        """Nothing."""
        return iter(())

    def of_piece(self, piece: Piece) -> Iterator[str]:
        """See `Shape`."""
        choice = self._choice(piece.index, piece.text, piece.logprobs or (), piece.finish)
        usage = {"usage": None} if self._include_usage else {}
        yield data_event({**self._head(), "choices": [choice], **usage})

    def closing(self, answer: Answer) -> Iterator[str]:
        """See `Shape`."""
        if self._include_usage:
            yield data_event({**self._head(), "choices": [], "usage": usage_object(answer.usage)})
        yield DONE

    def failing(self, error: TartletError) -> Iterator[str]:
        """See `Shape`."""
        yield error_event(error)

    def _choice(self, index: int, text: str, logprobs: Sequence[TokenEntry], finish: str | None) -> dict[str, Any]:
        shown = completion_logprobs(logprobs) if self._has_logprobs else None
        return {"index": index, "text": text, "logprobs": shown, "finish_reason": finish}

    def _head(self) -> dict[str, Any]:
        return {
            "id": self._about.id("cmpl-"),
            "object": "text_completion",
            "created": self._about.created,
            "model": self._about.model,
            "system_fingerprint": self._about.fingerprint,
        }
