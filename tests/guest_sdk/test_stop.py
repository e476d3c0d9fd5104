"""Stop conditions: how they compose, and what they refuse."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet_sdk import (
    InvalidArgument,
    StopCondition,
    ends_with_any,
    ignore_eos,
    max_tokens,
    stop_strings,
    stop_tokens,
)

conditions = st.builds(
    StopCondition,
    max_tokens=st.none() | st.integers(1, 100),
    tokens=st.lists(st.integers(0, 9), unique=True).map(tuple),
    strings=st.lists(st.sampled_from("abc"), unique=True).map(tuple),
    ignore_eos=st.booleans(),
)


def reasons(condition: StopCondition) -> tuple[Any, ...]:
    """A condition without the order in which its reasons were given."""
    return condition.max_tokens, set(condition.tokens), set(condition.strings), condition.ignore_eos


@given(conditions, conditions, conditions)
def test_composing_is_a_union(a: StopCondition, b: StopCondition, c: StopCondition) -> None:
    """`|` takes the reasons of both; order, grouping and repetition do not matter."""
    assert reasons(a | b) == reasons(b | a)
    assert reasons((a | b) | c) == reasons(a | (b | c))
    assert a | a == a
    assert StopCondition() | a == a
    assert a.and_(b) == a | b


def test_the_shorter_length_counts() -> None:
    """Two greatest lengths are two reasons to stop: the first one stops."""
    assert (max_tokens(64) | max_tokens(8)).max_tokens == 8


def test_ends_with_any_takes_tokens_and_strings() -> None:
    """It takes what `model.eos_tokens` is, and strings."""
    assert ends_with_any((1, 2), "end") == stop_tokens(1, 2) | stop_strings("end")


def test_the_contract_gets_all_of_it(stub: Any) -> None:
    """The contract's record has the same fields and values."""
    condition = max_tokens(5) | stop_tokens(1) | stop_strings("x") | ignore_eos()
    sent = condition.to_wit()

    assert {field.name for field in fields(sent)} == {field.name for field in fields(StopCondition)}
    assert (sent.max_tokens, sent.tokens, sent.strings, sent.ignore_eos) == (5, [1], ["x"], True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: max_tokens(0), "max_tokens: max_tokens must be from 1 to 4294967295, not 0"),
        (lambda: max_tokens(True), "max_tokens: max_tokens must be an int, not bool"),
        (lambda: stop_strings(""), "stop_strings: a stop string must not be empty"),
        (lambda: stop_strings(3), "stop_strings: a stop string must be a str, not int"),  # type: ignore[arg-type]
        (lambda: stop_tokens(-1), "stop_tokens: stop tokens must be token ids from 0 to 4294967295"),
    ],
)
def test_nonsense_is_refused_at_once(make: Any, message: str) -> None:
    """The error names the function and what is wrong."""
    with pytest.raises(InvalidArgument) as caught:
        make()

    assert str(caught.value).startswith(message)


def test_only_conditions_compose() -> None:
    """A plain string beside a condition is a TypeError, as for any operator."""
    with pytest.raises(TypeError):
        max_tokens(3) | "end"  # type: ignore[operator]
