"""Joining source maps."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tartlet.languages.source_maps import JoinedMap, _decode, _encode


def places(map_json: str) -> list[list[tuple[int, str, int, int]]]:
    """Column, source, line and column in the source of each segment, by line; segments of one number are left out."""
    content = json.loads(map_json)
    source = line = column = 0
    found = []
    for text in content["mappings"].split(";"):
        generated = 0
        segments = []
        for segment in filter(None, text.split(",")):
            numbers = _decode(segment)
            generated += numbers[0]
            if len(numbers) > 1:
                source, line, column = source + numbers[1], line + numbers[2], column + numbers[3]
                segments.append((generated, content["sources"][source], line, column))
        found.append(segments)
    return found


@given(st.lists(st.integers(-(2**31), 2**31)))
def test_numbers_are_read_as_they_are_written(numbers: list[int]) -> None:
    """A segment is its numbers, one after the other."""
    assert _decode("".join(map(_encode, numbers))) == numbers


def test_numbers_are_written_as_others_do() -> None:
    """What esbuild writes, too."""
    assert [_encode(number) for number in (0, 1, -1, 16, -16, 1000)] == ["A", "C", "D", "gB", "hB", "w+B"]


def test_each_text_keeps_its_places() -> None:
    """One below the other, with lines of no source between them."""
    joined = JoinedMap()
    joined.skip_lines(1)
    joined.add("a.ts", "AAAA;AACA,IAAK;;A", num_lines=4)
    joined.skip_lines(2)
    joined.add("b.ts", ";AAEAA,EAAE", num_lines=3)  # with the number of a name

    assert places(joined.to_json()) == [
        [],
        [(0, "a.ts", 0, 0)],
        [(0, "a.ts", 1, 0), (4, "a.ts", 1, 5)],
        [],
        [],
        [],
        [],
        [],
        [(0, "b.ts", 2, 0), (2, "b.ts", 2, 2)],
        [],
    ]


def test_a_text_without_places_changes_nothing() -> None:
    """Such as one that has no code."""
    joined = JoinedMap()
    joined.add("none.ts", "", num_lines=1)
    joined.add("b.ts", "AAEA", num_lines=1)

    assert places(joined.to_json()) == [[], [(0, "b.ts", 2, 0)]]
