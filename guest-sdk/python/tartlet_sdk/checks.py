"""Checks of arguments before they cross to the host, where a wrong type could only end the run."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable

from tartlet_sdk.errors import InvalidArgument

U32 = (1 << 32) - 1


def text(value: object, name: str, call: str) -> str:
    """`value`, if it is text that can be encoded as UTF-8."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be a str, not {type(value).__name__}", call=call)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            bad = f"U+{ord(value[error.start]):04X} at character {error.start}"
            raise InvalidArgument(f"{name} cannot be encoded as UTF-8: lone surrogate {bad}", call=call) from None
    return value


def json_text(value: object, name: str, call: str) -> str:
    """`value` as JSON text."""
    try:
        return text(json.dumps(value), name, call)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"{name} cannot be written as JSON: {error}", call=call) from None


def tokens(values: Iterable[int], name: str, call: str) -> list[int]:
    """`values` as a list, if all of them are numbers that a token id could be."""
    try:
        return array("I", values).tolist()
    except (TypeError, OverflowError):
        given = type(values).__name__
        if isinstance(values, list | tuple):
            given = repr(next((each for each in values if not isinstance(each, int) or not 0 <= each <= U32), values))
        raise InvalidArgument(f"{name} must be token ids from 0 to {U32}, not {given}", call=call) from None


def whole(value: object, name: str, call: str, low: int = 0, high: int = U32) -> int:
    """`value`, if it is a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(f"{name} must be an int, not {type(value).__name__}", call=call)
    if not low <= value <= high:
        raise InvalidArgument(f"{name} must be from {low} to {high}, not {value}", call=call)
    return value


def number(value: object, name: str, call: str, low: float = -math.inf, high: float = math.inf) -> float:
    """`value` as a float, if it is finite and from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(f"{name} must be a number, not {type(value).__name__}", call=call)
    if not low <= value <= high or not _is_finite(value):
        bounds = (
            f"a finite number{f' from {low:g}' if low > -math.inf else ''}{f' to {high:g}' if high < math.inf else ''}"
        )
        raise InvalidArgument(f"{name} must be {bounds}, not {value}", call=call)
    return float(value)


def _is_finite(value: float) -> bool:
    """Whether it is a number that a float can hold; an int can be larger than that."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
