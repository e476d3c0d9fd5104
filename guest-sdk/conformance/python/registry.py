"""The cases of this program, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CASES: dict[str, Callable[[Any], Any]] = {}
"""Each is called with its transcript, and may be `async`."""


def case(name: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Give a function the name of a case in cases.toml."""

    def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        CASES[name] = function
        return function

    return register
