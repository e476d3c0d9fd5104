"""The index of n-grams: the last place, in a text that grows, and never more of them than it may hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet_engine import ngram_index
from tartlet_engine.ngram_index import NgramIndex


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 4), st.integers(1, 7))
def test_it_finds_what_a_search_finds(token_ids: list[int], size: int, step: int) -> None:
    """At every length of a growing text, it names the last place before the end where the same tokens stood."""
    text: list[int] = []
    index = NgramIndex(text, size)
    for start in range(0, len(token_ids), step):
        text += token_ids[start : start + step]
        index.catch_up(1000)
        last = text[-size:]
        places = [place for place in range(size, len(text)) if text[place - size : place] == last]
        expected = places[-1] if places and len(text) >= size else None

        assert index.find(text) == expected


def test_indexing_takes_as_many_steps_as_it_may() -> None:
    """What is not indexed yet is not found; each call goes on where the last one has stopped."""
    text = [*range(100), 3, 4]
    index = NgramIndex(text, 2)
    index.catch_up(2)
    assert index.find(text) is None
    index.catch_up(2)
    assert index.find(text) == 5


def test_tokens_of_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash that is met again leads to other tokens: they are compared."""
    monkeypatch.setattr(NgramIndex, "_key", staticmethod(lambda token_ids: 7))
    index = NgramIndex([1, 2, 3, 4], 2)
    index.catch_up(10)

    assert index.find([9, 9]) is None
    assert index.find([2, 3]) == 3


def test_what_was_seen_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds a number of n-grams; one that comes again is the latest again."""
    monkeypatch.setattr(ngram_index, "MAX_PLACES", 3)
    index = NgramIndex([1, 2, 1, 3, 4, 5], 1)
    index.catch_up(10)

    assert len(index._places) == 3
    assert index.find([2]) is None
    assert index.find([1]) == 3
    assert index.find([4]) == 5
