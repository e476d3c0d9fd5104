"""Bodies with something odd in them."""

from __future__ import annotations

import json
import random
from typing import Any

import openai
import pytest

pytestmark = pytest.mark.runner

TOOL = {"name": "f", "description": "Does.", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
COMMON = {"model": "fake", "temperature": 0.5, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "stream": False, "user": "u"}
GENERATION = {
    **COMMON,
    "n": 2,
    "stop": ["x", "y"],
    "seed": 3,
    "max_tokens": 3,
    "logit_bias": {"5": 1, "7": -2.5},
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
}
BODIES: dict[str, Any] = {
    "chat/completions": {
        **GENERATION,
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ],
        "logprobs": True,
        "top_logprobs": 1,
        "tools": [{"type": "function", "function": TOOL}],
        "tool_choice": "auto",
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
        "prediction": {"type": "content", "content": "Hi"},
    },
    "completions": {**GENERATION, "prompt": ["a", "b"], "echo": True},
    "responses": {
        **COMMON,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "done"},
        ],
        "instructions": "Be kind.",
        "max_output_tokens": 3,
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}},
        "tools": [{"type": "function", **TOOL}],
        "tool_choice": "auto",
        "top_logprobs": 1,
    },
}  # fmt: skip
NUMBERS = [-1, 0, 1, 1e308, 10**30, -0.5, True, 1 << 63]
JUNK = [None, *NUMBERS, "", "x" * 3000, "\ud800", "\0", [], {}, [[[]]], [5], {"a": {"b": []}}, {"type": "text"}, "fake"]


def places(value: Any) -> list[Any]:
    """Whatever holds something, with the keys or indices of that."""
    keys = [*value] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


def mutated(body: Any, random_: random.Random) -> Any:
    """The body with one thing in it replaced, taken out, or added."""
    changed = json.loads(json.dumps(body))
    holder, key = random_.choice(places(changed))
    how = random_.random()
    if how < 0.7:
        holder[key] = random_.choice(JUNK)
    elif how < 0.85 or isinstance(holder, list):
        del holder[key]
    else:
        holder["odd"] = random_.choice(JUNK)
    return changed


@pytest.mark.parametrize("path", BODIES)
async def test_they_are_answered_or_refused(client: openai.AsyncOpenAI, path: str) -> None:
    """Each of a hundred: with an answer, or an error of the client's in OpenAI's shape; never with a fault."""
    random_ = random.Random(path)
    statuses = []
    bodies = [BODIES[path], *(mutated(BODIES[path], random_) for _ in range(100))]
    for body in bodies:
        response = await client._client.post(
            f"http://server/v1/{path}",
            content=json.dumps(body),
            headers={"Authorization": "Bearer key-of-acme", "Content-Type": "application/json"},
        )
        statuses.append(response.status_code)
        assert response.status_code in (200, 400, 404), (body, response.text)
        if response.status_code != 200:
            assert {"message", "type", "param", "code"} <= set(response.json()["error"])
    assert statuses[0] == 200
    assert statuses.count(400) > 40


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 100_000, b'{"model": NaN}'])
async def test_what_is_no_object_is_refused(client: openai.AsyncOpenAI, body: bytes) -> None:
    """With a status of 400."""
    response = await client._client.post(
        "http://server/v1/chat/completions",
        content=body,
        headers={"Authorization": "Bearer key-of-acme", "Content-Type": "application/json"},
    )

    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
