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


@pytest.mark.parametrize("bad", [5, b"name", "\ud800"])
def test_what_is_no_name(bad: Any) -> None:
    """Neither another type nor text that cannot be encoded."""
    with pytest.raises(ConfigError, match="Unicode"):
        arguments.check_name(bad)


def test_what_can_be_given() -> None:
    """Names and paths of models, counts of spares, names of programs, limits and anything that JSON holds."""
    limits = Limits(max_tokens=1)
    arguments.check_model("tiny")
    arguments.check_model(Path("model"))
    arguments.check_spares(0)
    arguments.check_name("größe")

    assert arguments.checked_limits(limits) is limits
    assert arguments.checked_json({"a": [1, None]}) == '{"a": [1, null]}'


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
