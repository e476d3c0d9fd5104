from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tartlet.server.front.openai.parameters import FunctionTool, GenerationParameters


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": float("nan")},
        {"temperature": "1"},
        {"temperature": True},
        {"top_p": -0.1},
        {"n": 1.5},
        {"n": True},
        {"seed": 1 << 64},
        {"seed": -(1 << 63) - 1},
        {"max_tokens": 1 << 31},
        {"presence_penalty": -2.5},
        {"repetition_penalty": 0},
        {"stop": ["a", ""]},
        {"stop": "x" * 1025},
        {"stop": 5},
        {"stop": "\ud800"},
        {"logit_bias": {"-1": 1.0}},
        {"logit_bias": {"١": 1.0}},
        {"logit_bias": {"1": float("inf")}},
        {"logit_bias": {str(token): 1 for token in range(1025)}},
        {"model": ""},
        {"stream_options": {"include": True}},
    ],
)
def test_numbers_and_texts_have_ranges(fields: Any) -> None:
    """And types: what only looks like a number is none."""
    with pytest.raises(ValidationError):
        GenerationParameters.model_validate({"model": "m", **fields})


def test_what_makes_no_difference_is_accepted() -> None:
    """Clients send it; and what nobody knows is kept, as an inferlet may know it."""
    sent = {"model": "m", "user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "auto", "topic": "x"}
    body = GenerationParameters.model_validate(sent)

    assert body.model_extra == {"topic": "x"}


def test_one_stop_is_a_list_of_one() -> None:
    """For whoever reads it."""
    assert GenerationParameters.model_validate({"model": "m", "stop": "END"}).stop == ["END"]


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "é", "a\n"])
def test_names_of_functions_are_plain(name: str) -> None:
    """So that a model can write them."""
    with pytest.raises(ValidationError):
        FunctionTool.model_validate({"name": name})
