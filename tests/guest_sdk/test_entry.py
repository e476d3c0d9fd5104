"""The function that a run calls."""

from __future__ import annotations

from types import ModuleType

import pytest

from tartlet_sdk import ProgramError, inferlet
from tartlet_sdk.entry import find_entry


def module(text: str, name: str = "main") -> ModuleType:
    """A module of that text."""
    made = ModuleType(name)
    exec("from tartlet_sdk import inferlet\n" + text, made.__dict__)
    return made


def test_the_marked_function_is_found() -> None:
    """It is the function itself: it can still be called in a unit test."""
    found = find_entry(module("@inferlet\ndef f(n): return n + 1\ndef g(): pass"))

    assert (found.__name__, found(1)) == ("f", 2)


def test_parentheses_make_no_difference() -> None:
    """`@inferlet()` marks as `@inferlet` does, and gives the function back."""
    main = find_entry(module("@inferlet()\ndef main(): pass"))

    assert main.__name__ == "main"


def test_a_modules_own_goes_before_an_imported_one() -> None:
    """A program may import another inferlet's module."""
    main = module("@inferlet\ndef own(): pass")
    main.__dict__["other"] = find_entry(module("@inferlet\ndef other(): pass", "helper"))

    assert find_entry(main).__name__ == "own"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(): pass", "no function in main.py is marked with @inferlet"),
        ("@inferlet\ndef f(): pass\n@inferlet\ndef g(): pass", "main.py marks several functions with @inferlet: f, g"),
    ],
)
def test_none_or_several_is_an_error(text: str, message: str) -> None:
    """The error says which."""
    with pytest.raises(ProgramError, match=message):
        find_entry(module(text))


def test_only_functions_can_be_marked() -> None:
    """A class or a value is refused where it is marked."""
    with pytest.raises(ProgramError, match="@inferlet marks a function, not 3"):
        inferlet(3)


@pytest.mark.parametrize("definition", ["def f(): yield", "async def f(): yield"])
def test_a_generator_is_refused(definition: str) -> None:
    """What it yields would go nowhere; the error says what to do instead."""
    with pytest.raises(ProgramError, match=r"f yields, but an inferlet returns its result\nPrint what"):
        module(f"@inferlet\n{definition}")
