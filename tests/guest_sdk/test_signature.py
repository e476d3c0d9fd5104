"""A function's parameters: from JSON, and described."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tartlet_sdk import ArgumentError, ProgramError, parameters
from tartlet_sdk.signature import Signature


def example(n: int, name: str = "x", *, deep: list[int] | None = None) -> None:
    """Do something."""


def takes_others(n: int = 1, **others: Any) -> None:
    """Take any name."""


def takes_nothing() -> None:
    """Take nothing."""


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        (example, {"n": 1}, {"n": 1}),
        (example, {"n": 1, "deep": [2]}, {"n": 1, "deep": [2]}),
        (takes_others, {"m": "x"}, {"m": "x"}),
        (takes_nothing, None, {}),
        (takes_nothing, {}, {}),
    ],
)
def test_input_becomes_arguments(function: Any, given: Any, expected: dict[str, Any]) -> None:
    """What is given is passed by name; what is not keeps its default."""
    assert Signature.of(function).arguments(given) == expected


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (
            example,
            {},
            "example: missing argument 'n'\n"
            "example takes: n (int); name (str, default 'x'); deep (list[int] or null, default None)",
        ),
        (example, {"n": 1, "nam": 2}, "example has no argument 'nam'; did you mean 'name'?\nexample takes: "),
        (
            example,
            [1],
            'example: the input must be a JSON object such as {"n": ..., "name": ..., "deep": ...}, not [1] (list)',
        ),
        (example, {"n": None}, "argument 'n': expected int, got None"),
        (takes_nothing, {"x": 1}, "takes_nothing has no argument 'x'\ntakes_nothing takes no arguments."),
    ],
)
def test_wrong_input_is_explained(function: Any, given: Any, message: str) -> None:
    """The error names the argument and says what the inferlet takes."""
    with pytest.raises(ArgumentError) as caught:
        Signature.of(function).arguments(given)

    assert str(caught.value).startswith(message)


def test_long_defaults_are_cut() -> None:
    """An error about one argument does not show all of a prompt that another has by default."""

    def ask(n: int, prompt: str = "word " * 500) -> None: ...

    with pytest.raises(ArgumentError) as caught:
        Signature.of(ask).arguments({})

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("function", [lambda a, /: None, lambda *a: None])
def test_parameters_need_names(function: Callable[..., None]) -> None:
    """JSON objects give arguments by name only."""
    with pytest.raises(ProgramError, match="cannot be given by name"):
        Signature.of(function)


def test_parameters_are_described_as_a_json_schema() -> None:
    """Names, types, defaults, and the function's own description."""
    assert parameters(example) == {
        "title": "example",
        "description": "Do something.",
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "name": {"type": "string", "default": "x"},
            "deep": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}], "default": None},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
