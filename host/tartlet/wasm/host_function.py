"""What a host function is: the Python side of one import of a component."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

HostFunction = Callable[..., Any]
"""Called as `function(fiber, *arguments)` on the executor's thread, on the fiber's own stack: keep it shallow.

It returns the result, or `SUSPEND`; raises `Err` for the err case of a `result`; raises a `TartletError` to end the run
with exactly that error. Anything else that it raises ends the run as an internal error.
"""

Interfaces = Mapping[str, Mapping[str, HostFunction]]
"""Host functions by interface name without version (`wasi:io/poll`), then by WIT item name.

Item names are those of the component model: `poll`, `[static]context.create`, `[method]context.fill`. A resource type's
own entry (`context`) is its destructor, called as `destructor(fiber, rep)` when the guest drops its handle. It is not
called when the instance goes away: who hands out handles frees what is left.
"""


class _Suspend:
    def __repr__(self) -> str:
        return "SUSPEND"


SUSPEND: Final = _Suspend()
"""Returned by a host function whose result comes later, through `Fiber.resume` or `Fiber.resume_error`."""


class Constant(dict[str, object]):
    """A record that a host function returns again and again: lowered the first time, then copied, in half the time.

    Its fields must not change any more, and hold no resource.
    """

    __slots__ = ("forms",)

    def __init__(self, fields: Mapping[str, object]) -> None:
        super().__init__(fields)
        self.forms: dict[object, Any] = {}  # the lowered value, by the closure that lowered it


class Err(Exception):
    """The err case of a `result`: raised by a host function, or a value inside others."""

    def __init__(self, value: object = None) -> None:
        super().__init__(value)
        self.value = value
