from __future__ import annotations

from typing import Any

import pytest

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.chat_input import chat_conversation, chat_input
from tartlet.server.front.openai.chat_request import ChatRequest
from tartlet.testing import FakeEngine

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}, "strict": True}}


@pytest.fixture
def model() -> Any:
    engine = FakeEngine()
    yield engine.models["fake"]
    engine.close()


def body(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({"model": "fake", "messages": [{"role": "user", "content": "Hi"}], **fields})


def test_messages_become_plain(model: Any) -> None:
    """Parts are put together, a developer is the system, and calls keep their names and arguments."""
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]  # fmt: skip

    assert chat_input(body(messages=messages), model)["messages"] == [
        {"role": "system", "text": "ab"},
        {"role": "assistant", "text": "", "calls": [{"name": "weather", "arguments": "{}"}]},
        {"role": "tool", "text": "rain"},
    ]


def test_defaults_are_those_of_openai(model: Any) -> None:
    """A temperature of 1, one choice, and as many tokens as there is room for."""
    settings = chat_input(body(), model)["settings"]

    assert (settings["n"], settings["stream"], settings["max_tokens"]) == (1, False, None)
    assert settings["sampler"]["temperature"] == 1.0
    assert settings["sampler"]["seed"] is None


def test_which_tools_may_be_called(model: Any) -> None:
    """None, those that the model wants, or one that must be."""
    assert chat_input(body(tools=[TOOL]), model)["tools"] == [{"name": "weather", "parameters": {"type": "object"}}]
    assert chat_input(body(tools=[TOOL]), model)["forced"] == []
    assert chat_input(body(tools=[TOOL], tool_choice="none"), model)["tools"] == []
    assert chat_input(body(tools=[TOOL], tool_choice="required"), model)["forced"] == ["weather"]
    named = {"type": "function", "function": {"name": "weather"}}
    assert chat_input(body(tools=[TOOL], tool_choice=named), model)["forced"] == ["weather"]


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [TOOL, TOOL]},
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        {"tools": [TOOL], "tool_choice": "required", "response_format": {"type": "json_object"}},
        {"top_logprobs": 2},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"enum": ["x" * 300_000]}}}},
    ],
)
def test_what_does_not_go_together_is_refused(model: Any, fields: Any) -> None:
    """With a status of 400."""
    with pytest.raises(ApiError) as caught:
        chat_input(body(**fields), model)

    assert caught.value.status == 400


def test_a_response_format_is_a_schema(model: Any) -> None:
    """Its own, or any object."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    own = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema, "strict": True}}

    assert chat_input(body(response_format=own), model)["settings"]["schema"].startswith('{"type": "object", "prop')
    assert (
        chat_input(body(response_format={"type": "json_object"}), model)["settings"]["schema"] == '{"type": "object"}'
    )
    assert chat_input(body(response_format={"type": "text"}), model)["settings"]["schema"] is None


def test_an_inferlet_gets_messages_as_they_were_sent() -> None:
    """Without what was left out; its prompt is what the user said last."""
    conversation = chat_conversation(
        body(messages=[{"role": "user", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}]}])
    )

    assert conversation.prompt == "b"
    assert conversation.messages[1] == {"role": "user", "content": [{"type": "text", "text": "b"}]}
