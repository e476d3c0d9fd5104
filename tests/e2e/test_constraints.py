"""Masks, combinations and matchers on the small real model, against Python's own regular expressions and json."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tartlet import sync

pytestmark = [pytest.mark.model, pytest.mark.runner, pytest.mark.slow]

HEAD = "import asyncio, json, re\nfrom tartlet_sdk import *\n@inferlet\nasync def main(value=None):\n"


def test_combinations_hold(real_host: sync.Host) -> None:
    """What is written at any temperature is in all parts, or in one."""
    both, either = real_host.run(
        HEAD
        + """
    model = Model.default()
    context = model.context()
    context.user("Write a word.")
    both = Constraint.regex("[a-z]{4,9}") & Constraint.regex("[aeioubdt]+")
    either = Constraint.regex("[0-9]{3}") | Constraint.json_schema({"type": "array", "items": {"type": "boolean"},
                                                                    "minItems": 1, "maxItems": 3})
    async def write(constraint, seed):
        return (await context.fork().generate(Sampler.temperature(2.0, seed=seed), constraint=constraint)).text
    return [await asyncio.gather(*(write(each, seed) for seed in range(8))) for each in (both, either)]
""",
        {"value": None},
    )

    assert all(re.fullmatch("[aeioubdt]{4,9}", text) for text in both), both
    assert len(set(both)) > 4
    assert all(re.fullmatch("[0-9]{3}", text) or all(v in (True, False) for v in json.loads(text)) for text in either)


def test_a_mask_bans_tokens(real_host: sync.Host) -> None:
    """Every token that has the letter e is banned, and the text goes on without."""
    free, banned, num_allowed = real_host.run(
        HEAD
        + """
    model = Model.default()
    context = model.context()
    context.fill("The meaning of life is")
    mask = Mask.where(lambda text: b"e" not in text.lower(), model)
    free = await context.fork().generate(max_tokens=24)
    banned = await context.fork().generate(mask=mask, max_tokens=24)
    return free.text, banned.text, len(mask)
""",
        {"value": None},
    )

    assert "e" in free
    assert "e" not in banned.lower()
    assert len(banned) > 10
    assert 10_000 < num_allowed < 49_152


def test_a_program_goes_through_a_schema_by_itself(real_host: sync.Host) -> None:
    """Token by token with masks of one token, going back and choosing anew: the text is JSON of the schema."""
    text, num_tokens = real_host.run(
        HEAD
        + """
    model = Model.default()
    context = model.context()
    context.user("Who are you? Answer in JSON.")
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer",
              "minimum": 1, "maximum": 99}}, "required": ["name", "age"], "additionalProperties": False}
    matcher = await Matcher.begin(Constraint.json_schema(schema), model)
    tokens = []
    while not matcher.is_complete:
        if matcher.forced:
            step = matcher.forced
        else:
            fork = context.fork()
            fork.fill_tokens(tokens)
            step = list((await fork.generate(mask=matcher.mask, max_tokens=1)).tokens)
            await matcher.advance(step)
            await matcher.rollback(len(step))
            assert step[0] in matcher.mask
        if step[0] in model.eos_tokens:
            break
        await matcher.advance(step)
        tokens += step
    assert matcher.may_end
    return model.detokenize(tokens), len(tokens)
""",
        {"value": None},
    )

    value: Any = json.loads(text)
    assert list(value) == ["name", "age"]
    assert 1 <= value["age"] <= 99
    assert len(value["name"]) <= 8
    assert num_tokens > 8
