from __future__ import annotations

from typing import Any

import openai
import pytest

pytestmark = pytest.mark.runner

HELLO: Any = [{"role": "user", "content": "Hello"}]
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
TOOLS: Any = [{"type": "function", "function": {"name": "f"}}]


async def streamed(client: openai.AsyncOpenAI, **options: Any) -> Any:
    """Text, tokens and finish reason by choice."""
    choices: dict[int, list[Any]] = {}
    async for chunk in await client.chat.completions.create(model="fake", messages=HELLO, stream=True, **options):
        for choice in chunk.choices:
            told = choices.setdefault(choice.index, ["", [], None])
            told[0] += choice.delta.content or ""
            told[1] += [each.token for each in (choice.logprobs.content or ())] if choice.logprobs else []
            told[2] = choice.finish_reason or told[2]
    return [choices[index] for index in sorted(choices)]


async def whole(client: openai.AsyncOpenAI, **options: Any) -> Any:
    answer = await client.chat.completions.create(model="fake", messages=HELLO, **options)
    return [
        [
            choice.message.content or "",
            [each.token for each in (choice.logprobs.content or ())] if choice.logprobs else [],
            choice.finish_reason,
        ]
        for choice in answer.choices
    ]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n": 3},
        {"max_tokens": 3},
        {"stop": ["d e", "zz"]},
        {"logprobs": True, "top_logprobs": 1},
        {"logprobs": True, "stop": "d"},
        {"tools": TOOLS},
        {"tools": TOOLS, "logprobs": True},
    ],
)
@pytest.mark.parametrize("reply", ["abc d é fg", f"Sure.\n{CALL}"])
async def test_a_stream_has_what_the_whole_has(
    client: openai.AsyncOpenAI, script: Any, options: Any, reply: str
) -> None:
    """Text, tokens and finish reasons, of all choices."""
    script.replies = [reply] * 6

    assert await streamed(client, **options) == await whole(client, **options)


async def test_stop_strings_do_not_leak(client: openai.AsyncOpenAI, script: Any) -> None:
    """Nor do their tokens, nor that of the turn's end."""
    script.replies = ["one two three", "one two three"]

    assert await whole(client, stop=[" tw"], logprobs=True) == [["one", ["o", "n", "e"], "stop"]]
    assert (await whole(client, logprobs=True))[0][1] == [*"one two three"]


async def test_calls_are_given_as_calls(client: openai.AsyncOpenAI, script: Any) -> None:
    """Those before a limit of one; what is before them is the content."""
    script.replies = [f"Sure.\n{CALL}\n{CALL}"] * 2
    many = await client.chat.completions.create(model="fake", messages=HELLO, tools=TOOLS)
    one = await client.chat.completions.create(model="fake", messages=HELLO, tools=TOOLS, parallel_tool_calls=False)

    assert many.choices[0].message.content == "Sure."
    assert [call.function.arguments for call in many.choices[0].message.tool_calls or ()] == ['{"a": 1}'] * 2  # type: ignore[union-attr]
    assert many.choices[0].finish_reason == "tool_calls"
    assert len(one.choices[0].message.tool_calls or ()) == 1


async def test_a_text_under_a_schema_stays_text(client: openai.AsyncOpenAI) -> None:
    """It is not read as JSON, which may be impossible, as of a number of 5,000 digits."""
    schema: Any = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "integer"}}}
    answer = await client.chat.completions.create(model="fake", messages=HELLO, response_format=schema)

    assert answer.choices[0].message.content == "Hello"


async def test_what_the_engine_refuses_is_the_requests_fault(client: openai.AsyncOpenAI) -> None:
    """With its message, streaming or not."""
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError, match="16,384") as caught:
            await client.chat.completions.create(  # type: ignore[call-overload]
                model="fake",
                messages=HELLO,
                prediction={"type": "content", "content": "x" * 20_000},
                stream=stream,
            )
        assert caught.value.code == "invalid_argument"
