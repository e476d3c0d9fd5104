from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet import ConfigError, Limits

NAMES = [field.name for field in fields(Limits)]


@given(st.sampled_from(NAMES), st.none() | st.integers(1, 2**63 - 1))
def test_a_limit_is_positive_or_none(name: str, value: int | None) -> None:
    """Every field takes any positive number, and None for no limit."""
    assert getattr(Limits(**{name: value}), name) == value


@given(
    st.sampled_from(NAMES), st.integers(max_value=0) | st.just(2**63) | st.floats(1, 9) | st.just("5") | st.just(True)
)
def test_anything_else_is_refused_by_name(name: str, value: Any) -> None:
    """The error says which field and which value."""
    with pytest.raises(ConfigError, match=re.escape(f"{name} must be positive") + f".*got {re.escape(repr(value))}"):
        Limits(**{name: value})
