from __future__ import annotations

import json
from typing import Any

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.answers import Answer, Choice, Piece, Usage
from tartlet.server.front.openai.completion_shape import CompletionShape
from tartlet.server.front.openai.shapes import DONE, About

ABOUT = About("run_ab12", 5, "m", "fp_1")
ENTRIES: Any = [(0, "61", -0.5, [("61", -0.5), ("c3", -1.0)]), (1, "62", -0.25, [("62", -0.25)])]


def values(events: Any) -> list[Any]:
    return [json.loads(event.removeprefix("data: ")) for event in events if event != DONE]


def test_an_answer_is_whole() -> None:
    """With log-probabilities as lists."""
    shape = CompletionShape(ABOUT, has_logprobs=True, include_usage=False)
    whole = shape.whole(Answer([Choice("ab", [], ENTRIES, "stop")], Usage(3, 2, 1)))

    assert whole["id"] == "cmpl-ab12"
    assert whole["choices"] == [
        {
            "index": 0,
            "text": "ab",
            "logprobs": {
                "tokens": ["a", "b"],
                "token_logprobs": [-0.5, -0.25],
                "top_logprobs": [{"a": -0.5, "bytes:\\xc3": -1.0}, {"b": -0.25}],
                "text_offset": [0, 1],
            },
            "finish_reason": "stop",
        }
    ]


def test_an_answer_comes_in_chunks() -> None:
    """A piece is one; the last of them is about usage."""
    shape = CompletionShape(ABOUT, has_logprobs=False, include_usage=True)
    chunks = [value for piece in (Piece(1, "a"), Piece(1, finish="length")) for value in values(shape.of_piece(piece))]
    end = list(shape.closing(Answer([], Usage(3, 2, 1))))

    assert [(chunk["choices"][0]["text"], chunk["choices"][0]["finish_reason"]) for chunk in chunks] == [
        ("a", None),
        ("", "length"),
    ]
    assert values(end)[0]["usage"]["completion_tokens"] == 1
    assert end[-1] == DONE


def test_an_error_is_an_event() -> None:
    """In the shape in which it would be an answer."""
    shape = CompletionShape(ABOUT, has_logprobs=False, include_usage=False)

    assert values(shape.failing(ApiError(400, "bad", "no")))[0]["error"]["code"] == "bad"
