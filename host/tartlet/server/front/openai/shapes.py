"""How an answer is written: whole, or as events of a stream. Each endpoint has a shape of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from tartlet.errors import TartletError
from tartlet.server.front.errors import error_fields
from tartlet.server.front.openai.answers import Answer, Piece, Usage

DONE = "data: [DONE]\n\n"


class Shape(Protocol):
    """Writes the answer to one request. Events are text as it is sent."""

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The answer in one."""
        ...

    def opening(self) -> Iterator[str]:
        """The events before all pieces."""
        ...

    def of_piece(self, piece: Piece) -> Iterator[str]:
        """The events of a piece."""
        ...

    def closing(self, answer: Answer) -> Iterator[str]:
        """The events after all pieces."""
        ...

    def failing(self, error: TartletError) -> Iterator[str]:
        """The events instead of what would still have come."""
        ...


@dataclass(frozen=True, slots=True)
class About:
    """What stands in all parts of an answer."""

    run_id: str
    created: int
    """Seconds since 1970."""
    model: str
    """As the client named it."""
    fingerprint: str
    """Of the model as it is served: answers with the same seed can only be the same where this is."""

    def id(self, prefix: str, *numbers: int) -> str:
        """An id that nothing else has, the same whether the answer is streamed."""
        return "_".join((f"{prefix}{self.run_id.removeprefix('run_')}", *map(str, numbers)))


def data_event(value: Any) -> str:
    """An event of a stream."""
    return f"data: {json.dumps(value, separators=(',', ':'))}\n\n"


def error_event(error: TartletError) -> str:
    """The event that ends a stream with an error."""
    return data_event({"error": error_fields(error)})


def usage_object(usage: Usage) -> dict[str, Any]:
    """As completions of both kinds have it."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": usage.accepted_tokens,
            "rejected_prediction_tokens": usage.drafted_tokens - usage.accepted_tokens,
        },
    }
