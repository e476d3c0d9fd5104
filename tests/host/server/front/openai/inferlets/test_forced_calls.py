from __future__ import annotations

import json
from typing import Any

import openai
import pytest

pytestmark = pytest.mark.runner

HELLO: Any = [{"role": "user", "content": "Hello"}]
TOOLS: Any = [
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "g"}},
]
NAMED: Any = {"type": "function", "function": {"name": "g"}}


async def test_one_of_the_tools_is_called(client: openai.AsyncOpenAI, script: Any) -> None:
    """Which one is generated first, then its arguments, in the format in which the model would write it."""
    script.replies = ['g"', '{"a": 1}']
    answer = await client.chat.completions.create(model="fake", messages=HELLO, tools=TOOLS, tool_choice="required")
    (call,) = answer.choices[0].message.tool_calls or ()

    assert (call.function.name, json.loads(call.function.arguments)) == ("g", {"a": 1})  # type: ignore[union-attr]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.choices[0].message.content is None
    assert script.prompts[0].endswith('assistant\n<tool_call>\n{"name": "')
    assert script.prompts[1].endswith('{"name": "g", "arguments": ') or '{"name": "g"' in script.prompts[1]


async def test_a_named_tool_is_called(client: openai.AsyncOpenAI, script: Any) -> None:
    """Only its arguments are generated, and streamed as they come."""
    script.replies = ['{"a": 1}'] * 2
    options: Any = {"model": "fake", "messages": HELLO, "tools": TOOLS, "tool_choice": NAMED}
    whole = await client.chat.completions.create(**options)
    deltas: list[Any] = []
    async for chunk in await client.chat.completions.create(**options, stream=True):
        deltas += chunk.choices[0].delta.tool_calls or ()

    (call,) = whole.choices[0].message.tool_calls or ()
    assert (call.function.name, call.function.arguments) == ("g", '{"a": 1}')
    assert deltas[0].function.name == "g"
    assert "".join(delta.function.arguments or "" for delta in deltas) == '{"a": 1}'


async def test_arguments_may_be_cut_off(client: openai.AsyncOpenAI, script: Any) -> None:
    """The finish reason says so."""
    script.replies = ['{"a": 1}']
    answer = await client.chat.completions.create(
        model="fake", messages=HELLO, tools=TOOLS, tool_choice=NAMED, max_tokens=3
    )

    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.tool_calls[0].function.arguments == '{"a'  # type: ignore[index, union-attr]


async def test_a_response_streams_the_arguments(client: openai.AsyncOpenAI, script: Any) -> None:
    """With events of their own."""
    script.replies = ['{"a": 1}']
    tool: Any = {"type": "function", "name": "g"}
    stream = await client.responses.create(
        model="fake", input="Hello", tools=[tool], tool_choice={"type": "function", "name": "g"}, stream=True
    )
    events = [event async for event in stream]

    assert [event.arguments for event in events if event.type == "response.function_call_arguments.done"] == [
        '{"a": 1}'
    ]
    assert events[-1].type == "response.completed"
    assert events[-1].response.output[0].type == "function_call"
