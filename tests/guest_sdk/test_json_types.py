"""JSON values against annotations."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet_sdk import ArgumentError, ProgramError
from tartlet_sdk.json_types import convert, describe, schema

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Colour(Enum):
    """Two."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Item:
    """Has a default."""

    name: str
    count: int = 1
    tags: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, 5, 5),
        (float, 5, 5.0),
        (str, "x", "x"),
        (bool, True, True),
        (None.__class__, None, None),
        (Any, {"a": [1]}, {"a": [1]}),
        (int | None, None, None),
        (float | int, 3, 3),
        (list[int], [1, 2], [1, 2]),
        (list, [1, "a"], [1, "a"]),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
        (set[int], [1, 1], {1}),
        (dict[str, float], {"a": 1}, {"a": 1.0}),
        (Literal["a", 2], 2, 2),
        (Colour, "red", Colour.RED),
        (Item, {"name": "x"}, Item("x")),
        (list[Item], [{"name": "x", "count": 2}], [Item("x", 2)]),
    ],
)
def test_a_value_becomes_what_the_annotation_says(annotation: Any, value: Any, expected: Any) -> None:
    """Each supported type, from JSON."""
    got = convert(value, annotation, "x")

    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, "5", "argument 'x': expected int, got '5' (str)"),
        (int, True, "argument 'x': expected int, got True"),
        (int, 5.0, "argument 'x': expected int, got 5.0 (float)"),
        (bool, 1, "argument 'x': expected bool, got 1 (int)"),
        (str, None, "argument 'x': expected str, got None"),
        (list[int], [1, "a"], "argument 'x[1]': expected int, got 'a' (str)"),
        (list[int], "ab", "argument 'x': expected list[int], got 'ab' (str)"),
        (tuple[int, str], [1], "argument 'x': expected tuple[int, str], got [1] (list)"),
        (dict[str, int], {"a": "b"}, "argument 'x.a': expected int, got 'b' (str)"),
        (int | None, "a", "argument 'x': expected int or null, got 'a' (str)"),
        (list[int] | None, ["a"], "argument 'x[0]': expected int, got 'a' (str)"),
        (Literal["a", "b"], "c", "argument 'x': expected one of 'a', 'b', got 'c' (str)"),
        (Literal[1], True, "argument 'x': expected one of 1, got True"),
        (Colour, "green", "argument 'x': expected one of 'red', 'blue', got 'green' (str)"),
        (Item, {}, "argument 'x' lacks the field 'name', str"),
        (Item, {"name": "a", "size": 1}, "argument 'x' has no field 'size'; Item has: name, count, tags"),
        (Item, {"name": 1}, "argument 'x.name': expected str, got 1 (int)"),
        (
            str,
            ["long"] * 99,
            f"argument 'x': expected str, got {str(['long'] * 99)[:57]}... (list)",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_place(annotation: Any, value: Any, message: str) -> None:
    """The error names the place, the expected and the given."""
    with pytest.raises(ArgumentError) as caught:
        convert(value, annotation, "x")

    assert str(caught.value) == message


@given(json_values)
def test_no_value_makes_another_error(value: Any) -> None:
    """Whatever JSON comes in, it is either converted or refused as an argument, by its place."""
    messages = []
    for annotation in (int, float | None, list[dict[str, int]], tuple[str, ...], Item, Colour, Literal[1, "a"], Any):
        try:
            convert(value, annotation, "x")
        except ArgumentError as error:
            messages.append(str(error))
    assert all("'x" in message for message in messages)


@pytest.mark.parametrize("annotation", [bytes, dict[int, str], complex])
def test_an_unsupported_annotation_is_the_programs_fault(annotation: Any) -> None:
    """A parameter that JSON cannot give is refused by its type's name."""
    with pytest.raises(ProgramError, match="a parameter cannot have the type"):
        convert({}, annotation, "x")
    with pytest.raises(ProgramError, match="a parameter cannot have the type"):
        schema(annotation)


def test_a_schema_describes_the_same() -> None:
    """The JSON schema of a type, as tools and forms read it."""
    assert schema(int) == {"type": "integer"}
    assert schema(list[str] | None) == {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
    assert schema(Literal["a", "b"]) == {"enum": ["a", "b"]}
    assert schema(dict[str, float]) == {"type": "object", "additionalProperties": {"type": "number"}}
    assert schema(tuple[int, str])["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert schema(Colour) == {"enum": ["red", "blue"]}
    assert json.loads(json.dumps(schema(Item))) == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_descriptions_are_readable() -> None:
    """Types in error messages are written as an author would."""
    assert describe(list[int] | None) == "list[int] or null"
    assert describe(tuple[int, ...]) == "tuple[int, ...]"
    assert describe(Any) == "anything"
