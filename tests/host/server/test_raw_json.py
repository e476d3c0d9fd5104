from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet.server.raw_json import RawJson, checked_json, to_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_json_stays_what_it_means(value: Any, indent: int | None, is_ascii: bool) -> None:
    """On one line, however it was written, also as a part of other JSON."""
    text = checked_json(json.dumps(value, indent=indent, ensure_ascii=is_ascii))

    assert not {"\n", "\r"} & set(text)
    assert json.loads(text) == value
    whole = to_json({"before": [1, "é"], "parts": [RawJson(text), RawJson(text)], "after": RawJson("null")})
    assert json.loads(whole) == {"before": [1, "é"], "parts": [value, value], "after": None}


def test_what_is_passed_on_is_not_written_again() -> None:
    """Numbers stay as long as they are, for readers that can tell."""
    assert checked_json('{"a": 1.000, "b": 12345678901234567890123}') == '{"a": 1.000, "b": 12345678901234567890123}'


@pytest.mark.parametrize("text", ['"\\ud800"', '"\ud800"'])
def test_half_a_surrogate_pair_becomes_an_escape(text: str) -> None:
    """Which can be sent."""
    assert checked_json(text) == '"\\ud800"'


@pytest.mark.parametrize("text", ["", "{", "[1,]", "NaN", "[1, Infinity]", "{} {}", "'a'", '"\n"', "[" * 100_000])
def test_what_is_no_json(text: str) -> None:
    """Is an error, whatever the depth."""
    with pytest.raises((ValueError, RecursionError)):
        checked_json(text)


def test_only_json_can_be_written() -> None:
    """A value of a type that is none is an error of ours."""
    assert to_json([1, "\ud800"]) == '[1, "\\ud800"]'
    with pytest.raises(TypeError):
        to_json({"a": object()})
