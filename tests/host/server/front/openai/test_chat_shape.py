from __future__ import annotations

import json
from typing import Any

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.answers import Answer, Call, Choice, Piece, Usage
from tartlet.server.front.openai.chat_shape import ChatShape
from tartlet.server.front.openai.shapes import DONE, About

ABOUT = About("run_ab12", 5, "m", "fp_1")
ENTRY: Any = (0, "c3a9", -0.5, [("c3a9", -0.5), ("c3", -1.0)])
ANSWER = Answer([Choice("é", [], [ENTRY], "length")], Usage(3, 2, 1))


def shape(**options: Any) -> ChatShape:
    return ChatShape(ABOUT, **{"has_logprobs": False, "include_usage": False, **options})


def values(events: Any) -> list[Any]:
    return [json.loads(event.removeprefix("data: ")) for event in events if event != DONE]


def test_an_answer_is_whole() -> None:
    """With log-probabilities, if they were asked for, and tokens that are parts of characters as bytes."""
    whole = shape(has_logprobs=True).whole(ANSWER)

    assert whole["id"] == "chatcmpl-ab12"
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "é", "refusal": None}
    assert whole["choices"][0]["logprobs"]["content"][0]["top_logprobs"][1] == {
        "token": "\ufffd",
        "bytes": [195],
        "logprob": -1.0,
    }
    assert whole["usage"]["prompt_tokens_details"]["cached_tokens"] == 2
    assert shape().whole(ANSWER)["choices"][0]["logprobs"] is None


def test_calls_are_told_whole_and_in_pieces_with_the_same_ids() -> None:
    """The name comes first, then the arguments as they come."""
    whole = shape().whole(Answer([Choice("", [Call("f", "{}"), Call("g", "")], [], "tool_calls")], Usage(1, 0, 1)))
    told = shape()
    pieces = [
        Piece(0, call="f"),
        Piece(0, arguments="{"),
        Piece(0, arguments="}"),
        Piece(0, call="g"),
        Piece(0, finish="tool_calls"),
    ]
    deltas = [value["choices"][0]["delta"] for piece in pieces for value in values(told.of_piece(piece))]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]

    message = whole["choices"][0]["message"]
    assert message["content"] is None
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert [call["index"] for call in calls] == [0, 0, 0, 1]
    assert [call["id"] for call in calls if "id" in call] == [call["id"] for call in message["tool_calls"]]
    assert "".join(call["function"]["arguments"] for call in calls[:3]) == "{}"


def test_each_choice_has_its_role_and_its_end() -> None:
    """However they are interleaved."""
    told = shape(has_logprobs=True)
    pieces = [Piece(1, "a", [ENTRY]), Piece(0, "b"), Piece(1, finish="stop"), Piece(0, finish="length")]
    choices = [value["choices"][0] for piece in pieces for value in values(told.of_piece(piece))]

    assert [(choice["index"], choice["delta"], choice["finish_reason"]) for choice in choices] == [
        (1, {"role": "assistant", "content": ""}, None),
        (1, {"content": "a"}, None),
        (0, {"role": "assistant", "content": ""}, None),
        (0, {"content": "b"}, None),
        (1, {}, "stop"),
        (0, {}, "length"),
    ]
    assert choices[1]["logprobs"]["content"][0]["token"] == "é"


def test_a_stream_ends_with_usage_if_it_is_asked_for() -> None:
    """In a chunk without choices, and then the mark that it is over."""
    with_usage = list(shape(include_usage=True).closing(ANSWER))

    assert values(with_usage)[0]["usage"]["total_tokens"] == 4
    assert values(with_usage)[0]["choices"] == []
    assert list(shape().closing(ANSWER)) == [DONE]


def test_an_error_is_an_event() -> None:
    """In the shape in which it would be an answer."""
    (value,) = values(shape().failing(ApiError(400, "bad", "no")))

    assert value["error"]["message"] == "no"
