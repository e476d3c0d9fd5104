from __future__ import annotations

from typing import Any

import pytest

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.response_input import response_conversation, response_input
from tartlet.server.front.openai.response_request import ResponseRequest
from tartlet.testing import FakeEngine

TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}
CONVERSATION = [
    {"role": "user", "content": [{"type": "input_text", "text": "How is the weather?"}]},
    {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [
        {"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}
    ]},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "rain"},
]  # fmt: skip


@pytest.fixture
def model() -> Any:
    engine = FakeEngine()
    yield engine.models["fake"]
    engine.close()


def body(**fields: Any) -> ResponseRequest:
    return ResponseRequest.model_validate({"model": "fake", "input": "Hi", **fields})


def test_items_become_messages(model: Any) -> None:
    """Calls join the assistant's message before them, and what they gave is a tool's."""
    assert response_input(body(input=CONVERSATION, instructions="Be brief."), model)["messages"] == [
        {"role": "system", "text": "Be brief."},
        {"role": "user", "text": "How is the weather?"},
        {"role": "assistant", "text": "I look.", "calls": [{"name": "weather", "arguments": "{}"}]},
        {"role": "tool", "text": "rain"},
    ]


def test_a_call_without_a_message_makes_one(model: Any) -> None:
    """With no text."""
    assert response_input(body(input=CONVERSATION[2:]), model)["messages"][0] == {
        "role": "assistant",
        "text": "",
        "calls": [{"name": "weather", "arguments": "{}"}],
    }


def test_formats_and_tools_are_those_of_chats(model: Any) -> None:
    """In the forms that responses have for them."""
    schema = {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}}
    forced = {"type": "function", "name": "weather"}

    assert response_input(body(text=schema), model)["settings"]["schema"] == '{"type": "object"}'
    assert response_input(body(tools=[TOOL], tool_choice=forced), model)["forced"] == ["weather"]
    assert response_input(body(tools=[TOOL]), model)["tools"] == [{"name": "weather", "parameters": {"type": "object"}}]
    with pytest.raises(ApiError):
        response_input(body(tools=[TOOL], tool_choice=forced, text=schema), model)


def test_an_inferlet_gets_messages_of_a_chat() -> None:
    """So that it need not know responses."""
    conversation = response_conversation(body(input=CONVERSATION))

    assert conversation.prompt == "How is the weather?"
    assert conversation.messages[1]["tool_calls"] == [
        {"type": "function", "function": {"name": "weather", "arguments": "{}"}}
    ]
