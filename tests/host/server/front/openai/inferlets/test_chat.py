from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest

pytestmark = pytest.mark.runner

TOOLS: Any = [{"type": "function", "function": {"name": "weather"}}]


async def test_a_chat_is_written_by_the_template(client: openai.AsyncOpenAI, script: Any) -> None:
    """All that the system says first is one message, with the tools; calls and their results follow."""
    await client.chat.completions.create(
        model="fake",
        messages=[
            {"role": "system", "content": "One."},
            {"role": "developer", "content": "Two."},
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"a": 1}'}}
            ]},
            {"role": "tool", "tool_call_id": "c", "content": "rain"},
        ],
        tools=TOOLS,
    )  # fmt: skip
    messages = script.prompts[0].split("<|im_start|>")

    assert messages[1].startswith("system\nOne.\n\nTwo.\n\n# Tools\n")
    assert '{"type": "function", "function": {"name": "weather"}}' in messages[1]
    assert messages[2:] == [
        "user\nWeather?<|im_end|>\n",
        'assistant\nI look.\n<tool_call>\n{"name": "weather", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n',
        "tool\nrain<|im_end|>\n",
        "assistant\n",
    ]


async def test_what_the_template_refuses_is_an_error(client: openai.AsyncOpenAI) -> None:
    """As a system's message after others."""
    with pytest.raises(openai.BadRequestError, match="system message must be the first"):
        await client.chat.completions.create(
            model="fake", messages=[{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]
        )


def test_results_of_tools_can_be_the_users(load_program: Callable[[str], Any]) -> None:
    """Where the template knows no tools."""
    chat = load_program("chat")

    class Refusing:
        """A context whose template refuses tools."""

        told = ""

        def tool(self, text: str) -> None:
            raise chat.InvalidArgument("no such role")

        def user(self, text: str) -> None:
            self.told = text

    context = Refusing()
    chat.fill(context, {"role": "tool", "text": "rain"})

    assert context.told == "<tool_response>\nrain\n</tool_response>"
