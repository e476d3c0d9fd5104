"""JSON schemas of growing difficulty: whatever is sampled at whatever temperature is JSON that they describe."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tartlet_engine.api import ConstraintKind, Sampling
from tartlet_engine.constraints.follower import Follower, GrammarFollower
from tartlet_engine.constraints.grammars import compile_grammar
from tartlet_engine.constraints.vocabulary import TokenIndex, Vocabulary
from tartlet_engine.sampler import Sampled, SamplingRow, sample
from tartlet_engine.tokenizer import ModelTokenizer

from .schemas import all_schemas, grown_schemas, matches

Begin = Callable[[dict[str, Any]], Follower]
MOST_TOKENS = 600


@pytest.fixture(scope="session")
def begin_small(follow: Callable[..., GrammarFollower]) -> Begin:
    """Begin to follow a schema, over the tiny model's 512 tokens."""
    return lambda schema: follow(json.dumps(schema), ConstraintKind.JSON_SCHEMA)


def write(follower: Follower, text: ModelTokenizer, size: int, temperature: float, seed: int) -> tuple[str, bool]:
    """Write with random logits, by masks and forced tokens, as a generation does. Tells whether it came to an end."""
    random = np.random.default_rng(seed)
    words = np.zeros(-(-size // 32), dtype=np.uint32)
    ends = np.array(text.eos_token_ids)
    tokens: list[int] = []
    while len(tokens) < MOST_TOKENS:
        if forced := follower.forced():
            tokens += forced
            follower.consume(forced)
            assert follower.problem is None
        if follower.is_complete:
            return text.decode(tokens), True
        follower.fill_mask(words)
        assert words.any(), "a mask leaves nothing"
        allowed = np.unpackbits(words.view(np.uint8), bitorder="little")[:size]
        assert bool(allowed[ends].any()) == follower.may_end, "an end is allowed exactly where the text is whole"
        logits = torch.from_numpy(random.normal(0, 3, (1, size)).astype(np.float32))
        row = SamplingRow(Sampling(seed=seed, temperature=temperature), len(tokens), mask=words)
        (sampled,) = sample(logits, [row])
        assert isinstance(sampled, Sampled)
        assert allowed[sampled.token_id]
        if sampled.token_id in text.eos_token_ids:
            return text.decode(tokens), True
        tokens.append(sampled.token_id)
        follower.consume([sampled.token_id])
        assert follower.problem is None
    return text.decode(tokens), False


def check(
    schemas: list[dict[str, Any]], begin: Begin, text: ModelTokenizer, size: int, temperatures: list[float]
) -> None:
    """Write each schema at each temperature, and validate what comes to an end, which nearly all must."""
    num_written = num_ended = 0
    for number, schema in enumerate(schemas):
        prototype = begin(schema)
        for temperature in temperatures:
            written, has_ended = write(prototype.copy(), text, size, temperature, number)
            num_written += 1
            num_ended += has_ended
            if has_ended:
                assert matches(json.loads(written), schema), (number, temperature, schema, written)
    assert num_ended >= 0.9 * num_written


def test_grown_schemas(begin_small: Begin, text: ModelTokenizer) -> None:
    """200 schemas from flat to five levels deep, with unicode, references, recursion, formats, patterns and bounds."""
    check(list(grown_schemas(200)), begin_small, text, 512, [0.0, 1.0, 4.0])


@pytest.mark.model
def test_on_a_real_vocabulary(real_folder: Path) -> None:
    """A part of them, of all depths, in the tokens of the small real model."""
    text = ModelTokenizer(real_folder)
    vocabulary = Vocabulary.of(text, text.vocabulary_size)
    tokenizer, index = vocabulary.make_tokenizer(), TokenIndex(vocabulary)

    def begin(schema: dict[str, Any]) -> Follower:
        matcher = compile_grammar(tokenizer, ConstraintKind.JSON_SCHEMA, json.dumps(schema))
        return GrammarFollower(matcher, index)

    schemas = [*list(grown_schemas(200))[::5], *list(all_schemas())[::10]]
    check(schemas, begin, text, text.vocabulary_size, [0.0, 2.0])


def test_the_check_can_fail() -> None:
    """What the schemas do not describe, the validator of these tests refuses."""
    wrong: list[tuple[Any, dict[str, Any]]] = [
        (1.5, {"type": "integer"}),
        (True, {"type": "integer"}),
        (8, {"exclusiveMinimum": -1, "maximum": 7}),
        (30, {"multipleOf": 25}),
        ("abc", {"pattern": "[0-9]"}),
        ("2020-13", {"type": "string", "format": "date-time"}),
        ([True, None, 1], {"prefixItems": [{"type": "boolean"}, {"type": "null"}], "items": False}),
        ({"known": 1, "other": "x"}, {"properties": {"known": {}}, "additionalProperties": {"type": "integer"}}),
        (
            {"a": {}},
            {"$defs": {"n": {"type": "object", "required": ["v"]}}, "properties": {"a": {"$ref": "#/$defs/n"}}},
        ),
        (3, {"oneOf": [{"minimum": 1}, {"maximum": 5}]}),
        (3, {"anyOf": [{"minimum": 4}, {"type": "string"}]}),
    ]
    assert [matches(value, schema) for value, schema in wrong] == [False] * len(wrong)
