from __future__ import annotations

import json
from typing import Any

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.answers import Answer, Call, Choice, Piece, Usage
from tartlet.server.front.openai.response_request import ResponseRequest
from tartlet.server.front.openai.response_shape import ResponseShape
from tartlet.server.front.openai.shapes import About

ABOUT = About("run_ab12", 5, "m", "fp_1")
ENTRY: Any = (0, "61", -0.5, [])
USAGE = Usage(3, 2, 1)


def shape(**fields: Any) -> ResponseShape:
    return ResponseShape(ABOUT, ResponseRequest.model_validate({"model": "m", "input": "Hi", **fields}))


def told(writer: ResponseShape, pieces: list[Piece], answer: Answer) -> list[Any]:
    events = [*writer.opening(), *(event for piece in pieces for event in writer.of_piece(piece))]
    events += writer.closing(answer)
    values = [json.loads(event.partition("data: ")[2]) for event in events]
    assert [event.partition("\n")[0] for event in events] == [f"event: {value['type']}" for value in values]
    return values


def test_what_is_streamed_ends_as_the_whole() -> None:
    """The last event has the response as it would have come in one."""
    answer = Answer([Choice("ab", [Call("f", "{}")], [ENTRY], "tool_calls")], USAGE)
    pieces = [Piece(0, "a", [ENTRY]), Piece(0, "b"), Piece(0, call="f"), Piece(0, arguments="{}")]
    events = told(shape(top_logprobs=0), [*pieces, Piece(0, finish="tool_calls")], answer)

    assert events[-1] == {
        "type": "response.completed",
        "sequence_number": len(events) - 1,
        "response": shape(top_logprobs=0).whole(answer),
    }


def test_calls_are_items_with_events_of_their_own() -> None:
    """Each is begun, gets its arguments, and is done before the next begins."""
    answer = Answer([Choice("", [Call("f", "{}"), Call("g", "")], [], "tool_calls")], USAGE)
    pieces = [Piece(0, call="f"), Piece(0, arguments="{}"), Piece(0, call="g"), Piece(0, finish="tool_calls")]
    events = told(shape(), pieces, answer)

    assert [(event["type"].removeprefix("response."), event.get("output_index")) for event in events[2:-1]] == [
        ("output_item.added", 0),
        ("function_call_arguments.delta", 0),
        ("function_call_arguments.done", 0),
        ("output_item.done", 0),
        ("output_item.added", 1),
        ("function_call_arguments.done", 1),
        ("output_item.done", 1),
    ]
    assert events[-1]["response"]["output"] == shape().whole(answer)["output"]


def test_nothing_is_a_message_without_text() -> None:
    """There is always something in the output."""
    events = told(shape(), [Piece(0, finish="stop")], Answer([Choice("")], USAGE))

    assert events[-1]["response"]["output"][0]["content"][0]["text"] == ""
    assert events[-1]["response"] == shape().whole(Answer([Choice("")], USAGE))


def test_what_is_cut_off_is_incomplete() -> None:
    """With the reason."""
    events = told(shape(), [Piece(0, "a"), Piece(0, finish="length")], Answer([Choice("a", finish="length")], USAGE))

    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert events[-1]["response"] == shape().whole(Answer([Choice("a", finish="length")], USAGE))


def test_a_failure_is_an_event() -> None:
    """With what there was so far."""
    writer = shape()
    list(writer.of_piece(Piece(0, "a")))
    (event,) = writer.failing(ApiError(422, "guest_error", "boo"))
    response = json.loads(event.partition("data: ")[2])["response"]

    assert (response["status"], response["error"]) == ("failed", {"code": "guest_error", "message": "boo"})
    assert response["output"][0]["content"][0]["text"] == "a"


def test_the_response_repeats_what_was_asked_for() -> None:
    """As clients expect."""
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    whole = shape(
        tools=[tool],
        tool_choice={"type": "function", "name": "f"},
        text={"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}},
        temperature=0,
    ).whole(Answer([Choice("")], USAGE))

    assert whole["tools"][0]["name"] == "f"
    assert whole["tool_choice"] == {"type": "function", "name": "f"}
    assert whole["text"]["format"]["schema"] == {"type": "object"}
    assert whole["temperature"] == 0
