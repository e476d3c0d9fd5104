"""A choice that must be a tool's call: which tool is one generation, its arguments by the tool's schema another."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from answering import Choice, JsonConstraint, Settings
from tool_format import BEGIN

from tartlet_sdk import Context, Usage


async def forced_call(
    context: Context, choice: Choice, settings: Settings, index: int, tools: list[dict[str, Any]]
) -> Usage:
    """Generate a call of one of the tools, in the format in which the model would write it by itself."""
    sampler = settings.sampler(index)
    context.fill(f'{BEGIN}\n{{"name": "')
    named: Usage | None = None
    tool = tools[0]
    if len(tools) > 1:
        draft = await context.generate(sampler, choices=[f'{tool["name"]}"' for tool in tools])
        tool = next(tool for tool in tools if draft.text == f'{tool["name"]}"')
        named = draft.usage
        context.fill(', "arguments": ')
    else:
        context.fill(f'{tool["name"]}", "arguments": ')
    choice.add_call(tool["name"])
    generation = context.generate(
        sampler,
        stop=settings.stop_condition(named.generated_tokens if named else 0),
        chunk_interval=settings.chunk_interval,
        constraint=JsonConstraint(json.dumps(tool.get("parameters") or {"type": "object"}), "tools"),
    )
    if settings.is_streaming:
        async for chunk in generation:
            choice.add_arguments(chunk.text)
        draft = generation.result
    else:
        draft = await generation
        choice.add_arguments(draft.text)
    choice.end(draft.finish_reason)
    if named is None:
        return draft.usage
    return dataclasses.replace(named, generated_tokens=named.generated_tokens + draft.usage.generated_tokens)
