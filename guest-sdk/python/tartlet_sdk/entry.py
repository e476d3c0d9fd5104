"""The function that a run calls: marked with `@inferlet`, its arguments come from the run's input."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeVar, overload

from tartlet_sdk.errors import ProgramError
from tartlet_sdk.signature import Signature

F = TypeVar("F")

MARK = "_is_inferlet"
GENERATOR_FLAGS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


@overload
def inferlet(function: F) -> F: ...
@overload
def inferlet() -> Callable[[F], F]: ...
def inferlet(function: Any = None) -> Any:
    """Mark the function that a run calls; it may be `async`. `@inferlet()` is the same as `@inferlet`.

    The run's input, a JSON object, gives the arguments: each is checked against its annotation. What the function
    returns is the run's result, as JSON; dataclasses become objects.
    """
    if function is None:
        return inferlet
    if not isinstance(function, FunctionType):
        raise ProgramError(
            f"@inferlet marks a function, not {function!r}", hint="Write @inferlet on the line above `def`."
        )
    if function.__code__.co_flags & GENERATOR_FLAGS:
        raise ProgramError(
            f"{function.__name__} yields, but an inferlet returns its result",
            hint="Print what is to be streamed, and return the result.",
        )
    setattr(function, MARK, True)
    return function


def find_entry(module: ModuleType) -> FunctionType:
    """The module's function marked with `@inferlet`. One that it only imports counts if it has none of its own."""
    marked = [value for value in vars(module).values() if isinstance(value, FunctionType) and hasattr(value, MARK)]
    own = [function for function in marked if function.__module__ == module.__name__] or marked
    if not own:
        hint = "Mark the one to run. A Controller is run with `tartlet run --controller`."
        raise ProgramError(f"no function in {module.__name__}.py is marked with @inferlet", hint=hint)
    if len(own) > 1:
        names = ", ".join(function.__name__ for function in own)
        raise ProgramError(f"{module.__name__}.py marks several functions with @inferlet: {names}", hint="Mark one.")
    return own[0]


def parameters(function: Any) -> dict[str, Any]:
    """Describe an inferlet's input as a JSON schema: names, types, defaults."""
    return Signature.of(function).schema()
