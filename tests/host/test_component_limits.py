"""Limits on what is in a component."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tartlet.component_limits import COUNTED, EMBEDDED, ComponentCounts, ComponentLimits, refusal
from tartlet.errors import ConfigError

DOCS = Path(__file__).parent.parent.parent / "docs" / "limits.md"
NAMES = [field.name for field in fields(ComponentCounts)]


def test_every_count_has_a_limit_and_a_name() -> None:
    """In the same order, so that they can be printed side by side."""
    assert [f"max_{name}" for name in NAMES] == [field.name for field in fields(ComponentLimits)]
    assert list(COUNTED) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_host_s_own_user_may_load_more_than_is_uploaded(name: str) -> None:
    """Of everything."""
    assert EMBEDDED.of(name) > ComponentLimits().of(name)


@pytest.mark.parametrize("value", [-1, 1.5, None, True, "10"])
def test_what_is_no_limit_is_refused(value: Any) -> None:
    """By the name of the limit."""
    with pytest.raises(ConfigError, match="max_functions must be a whole number"):
        ComponentLimits(max_functions=value)


def test_a_refusal_has_the_numbers_and_says_what_to_do() -> None:
    """Of a component that is too large, that source is smaller."""
    error = refusal("functions", 262_144, 50_000)
    assert (error.code, error.message) == (
        "too_many_functions",
        "the component has 262,144 functions, allowed are 50,000",
    )
    assert "max_functions" in error.hint
    assert "source is small" in refusal("size_bytes", 2, 1).hint


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_has_each_limit(name: str) -> None:
    """With its code and both values."""
    row = next(line for line in DOCS.read_text(encoding="utf-8").splitlines() if f"| `max_{name}`" in line)
    units = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    values = [cell.split() for cell in row.split("|")[3:5]]

    assert f"`{COUNTED[name].code}`" in row
    assert [int(value[0].replace(",", "")) * units["".join(value[1:])] for value in values] == [
        ComponentLimits().of(name),
        EMBEDDED.of(name),
    ]
