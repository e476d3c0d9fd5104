"""Calls into the host: its errors become exceptions that name the SDK's own call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tartlet_sdk import wit
from tartlet_sdk.errors import BY_CODE, TartletError

if TYPE_CHECKING:
    from wit_world.imports import types as wit_types

P = ParamSpec("P")
R = TypeVar("R")


def kebab(name: str) -> str:
    """The contract's spelling of an enum member that componentize-py spells `KV_EXHAUSTED`."""
    return name.lower().replace("_", "-")


def from_host(error: wit_types.Error, call_name: str) -> TartletError:
    """The exception for an error of the contract."""
    return BY_CODE[kebab(error.code.name)](error.message, hint=error.hint, call=call_name)


def call(name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call the host's `function`. Raises the `TartletError` of its error, which names the SDK's own call `name`."""
    try:
        return function(*args, **kwargs)
    except wit.Err as error:
        raise from_host(error.value, name) from None
