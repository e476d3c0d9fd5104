from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet import ConfigError, Limits

NAMES = [field.name for field in fields(Limits)]


@given(st.sampled_from(NAMES), st.none() | st.integers(min_value=1))
def test_a_limit_is_positive_or_none(name: str, value: int | None) -> None:
    """Every field takes any positive number, and None for no limit."""
    assert getattr(Limits(**{name: value}), name) == value


@given(st.sampled_from(NAMES), st.integers(max_value=0))
def test_anything_else_is_refused_by_name(name: str, value: int) -> None:
    """The error says which field and which value."""
    with pytest.raises(ConfigError, match=rf"{name} must be positive or None, got {value}"):
        Limits(**{name: value})
