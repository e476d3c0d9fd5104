from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tartlet.server.front.openai.chat_request import ChatRequest, text_of

HELLO = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": "Hi", "mood": "good"},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},
        {"role": "assistant"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": "Hi", "function_call": {"name": "f", "arguments": ""}},
        {"role": "tool", "content": "Hi"},
        {"role": "function", "name": "f", "content": "Hi"},
        "Hi",
    ],
)
def test_messages_are_checked(message: Any) -> None:
    """What they must have, and what models here cannot read."""
    with pytest.raises(ValidationError):
        ChatRequest.model_validate({"model": "m", "messages": [HELLO, message]})


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"type": "custom", "custom": {"name": "f"}}]},
        {"tools": [{"type": "function", "function": {"name": "f"}}] * 129},
        {"tool_choice": "always"},
        {"response_format": {"type": "grammar"}},
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
        {"modalities": ["text", "audio"]},
        {"reasoning_effort": "high"},
        {"web_search_options": {}},
        {"messages": [HELLO] * 1025},
    ],
)
def test_what_is_not_supported_is_refused(fields: Any) -> None:
    """By its name, rather than left out."""
    with pytest.raises(ValidationError) as caught:
        ChatRequest.model_validate({"model": "m", "messages": [HELLO], **fields})

    assert {error["loc"][0] for error in caught.value.errors()} == set(fields)


def test_what_is_not_supported_may_be_nothing() -> None:
    """Some clients send all parameters, most of them empty."""
    ChatRequest.model_validate({"model": "m", "messages": [HELLO], "audio": None, "reasoning_effort": None})


def test_an_answer_can_be_sent_back() -> None:
    """As it was received, with its empty fields."""
    received = {"role": "assistant", "content": "a", "refusal": None, "annotations": [], "tool_calls": None}
    body = ChatRequest.model_validate({"model": "m", "messages": [HELLO, received]})

    assert text_of(body.messages[1].content) == "a"
