"""Results as JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from tartlet_sdk import ResultError
from tartlet_sdk.results import to_json


class Colour(Enum):
    """One."""

    RED = "red"


@dataclass
class Point:
    """Two numbers."""

    x: Any
    y: Any = 0


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, None),
        ("é", "é"),
        ((1, 2.5), [1, 2.5]),
        ({"a": {3}}, {"a": [3]}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (Colour.RED, "red"),
        ([Point(Point(1, 2))], [{"x": {"x": 1, "y": 2}, "y": 0}]),
    ],
)
def test_values_become_json(result: Any, expected: Any) -> None:
    """JSON's own values, and dataclasses, enums, tuples and sets, at any depth."""
    assert json.loads(to_json(result)) == expected


def endless() -> list[Any]:
    """A list that contains itself."""
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("result", "place"),
    [
        (b"x", "the result is b'x' (bytes)"),
        ({"a": [1, Point(2, b"x")]}, "the result['a'][1]['y'] is b'x' (bytes)"),
        ([float("nan")], "the result[0] is nan (float)"),
        ({(1, 2): 3}, "the result has the key (1, 2) (tuple)"),
        (endless(), "the result[0] contains itself"),
    ],
)
def test_what_is_no_json_is_named(result: Any, place: str) -> None:
    """The error says where in the result it is, and what."""
    with pytest.raises(ResultError) as caught:
        to_json(result)

    assert caught.value.message == f"cannot be written as JSON: {place}"
    assert caught.value.hint
