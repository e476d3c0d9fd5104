from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tartlet import ConfigError, Limits, arguments


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_a_seed(seed: int) -> None:
    """Any number that fits in 64 bits is one."""
    assert arguments.checked_seed(seed) == seed


@pytest.mark.parametrize("bad", [-1, 2**64, 1.5, True, "1", None])
def test_what_is_no_seed(bad: Any) -> None:
    """The error has the range and the value."""
    with pytest.raises(ConfigError, match=r"below 2\*\*64, got"):
        arguments.checked_seed(bad)


@pytest.mark.parametrize("bad", [{}, 5, "tokens=5", Limits])
def test_what_are_no_limits(bad: Any) -> None:
    """The error says what they are made with."""
    with pytest.raises(ConfigError, match=r"tartlet\.Limits"):
        arguments.checked_limits(bad)


@pytest.mark.parametrize("bad", [5, b"name", "\ud800", None])
def test_what_is_no_text(bad: Any) -> None:
    """Neither another type nor text that cannot be encoded."""
    with pytest.raises(ConfigError, match="the name must be Unicode text, got"):
        arguments.check_text("the name", bad)


def test_what_can_be_given() -> None:
    """Text, counts, switches, paths, tenants, limits and anything that JSON holds."""
    limits = Limits(max_tokens=1)
    arguments.check_text("name", "größe")
    arguments.check_text("name", None, may_be_none=True)
    arguments.check_count("n", 0)
    arguments.check_count("n", None, may_be_none=True)
    arguments.check_switch("s", False)
    arguments.check_path("p", Path("x"))
    arguments.check_engine(None)
    arguments.check_progress(print)

    assert arguments.checked_tenant("größe") == "größe"
    assert arguments.checked_weight(2) == 2.0
    assert arguments.checked_limits(limits) is limits
    assert arguments.checked_json({"a": [1, None]}) == '{"a": [1, null]}'


@pytest.mark.parametrize("bad", [-1, 1.0, True, "1", None])
def test_what_is_no_count(bad: Any) -> None:
    """The error names the argument, what it may be and what it was."""
    with pytest.raises(ConfigError, match="n must be a whole number, at least 0, got"):
        arguments.check_count("n", bad)


@pytest.mark.parametrize("bad", ["", "\ud800", "x" * 257, 5, None])
def test_what_is_no_tenant(bad: Any) -> None:
    """A name that cannot be hashed, told apart or shown; of a long one, the beginning is shown."""
    with pytest.raises(ConfigError, match="tenant must be Unicode text of 1 to 256 characters, got") as caught:
        arguments.checked_tenant(bad)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, 1001, True, "1", None])
def test_what_is_no_weight(bad: Any) -> None:
    """The error has the range."""
    with pytest.raises(ConfigError, match=r"weight must be 0\.001 to 1000, got"):
        arguments.checked_weight(bad)


def test_the_bounds_are_the_engines() -> None:
    """What the host lets through, the engine takes."""
    from tartlet_engine import fairness, validation

    assert (arguments.MIN_WEIGHT, arguments.MAX_WEIGHT) == (fairness.MIN_WEIGHT, fairness.MAX_WEIGHT)
    assert arguments.MAX_TENANT_LEN == validation.MAX_TENANT_LEN


@pytest.mark.parametrize("bad", [math.inf, {1, 2}, b"x"])
def test_what_json_cannot_hold(bad: Any) -> None:
    """The error says that it is the input."""
    with pytest.raises(ConfigError, match="the input cannot be written as JSON"):
        arguments.checked_json(bad)


def test_adapters_become_absolute_paths() -> None:
    """By name; without any, there is none."""
    assert arguments.checked_adapters(None) == {}
    assert arguments.checked_adapters({"a": "x", "b": Path("/y")}) == {"a": Path("x").absolute(), "b": Path("/y")}


@pytest.mark.parametrize("bad", ["folder", ["folder"], {"a": 5}, {5: "folder"}])
def test_what_are_no_adapters(bad: Any) -> None:
    """Anything but folders by name."""
    with pytest.raises(ConfigError, match="adapters must be folders by name"):
        arguments.checked_adapters(bad)
