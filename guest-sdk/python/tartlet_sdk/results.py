"""An inferlet's result as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from tartlet_sdk.errors import ResultError
from tartlet_sdk.json_types import shown

ALLOWED = "Return text, numbers, booleans, None, lists, dicts, dataclasses and enums. Await what is not finished yet."


def to_json(result: object) -> str:
    """Write a result as JSON. Raises `ResultError`, which names the part of it that cannot be written."""
    try:
        return ENCODER.encode(result)
    except (TypeError, ValueError, RecursionError) as error:
        place = find_culprit(result, "the result", set()) or f"the result: {error}"
        raise ResultError(f"cannot be written as JSON: {place}", hint=ALLOWED) from None


def plain(value: Any) -> Any:
    """A value that JSON has, for one level of a value that it has not."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(type(value).__name__)


ENCODER = json.JSONEncoder(default=plain, allow_nan=False)


def find_culprit(value: Any, path: str, above: set[int]) -> str | None:
    """Where a value holds what JSON has no form for, and what that is."""
    if id(value) in above:
        return f"{path} contains itself"
    try:
        value = value if isinstance(value, str | int | float | list | tuple | dict | None) else plain(value)
        if not isinstance(value, dict | list | tuple):
            json.dumps(value, allow_nan=False)
            return None
    except (TypeError, ValueError):
        return f"{path} is {shown(value)}"
    above = above | {id(value)}
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str | int | float | None):
                return f"{path} has the key {shown(key)}"
        return _first(find_culprit(each, f"{path}[{key!r}]", above) for key, each in value.items())
    return _first(find_culprit(each, f"{path}[{k}]", above) for k, each in enumerate(value))


def _first(found: Any) -> str | None:
    return next((place for place in found if place), None)
