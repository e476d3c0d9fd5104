"""Checks of arguments before they cross to the host."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import InvalidArgument, checks


def test_what_is_right_passes() -> None:
    """Good values come back, as the contract's types."""
    assert checks.text("naïve 🌍", "text", "f") == "naïve 🌍"
    assert checks.tokens(range(3), "tokens", "f") == [0, 1, 2]
    assert checks.whole(3, "n", "f") == 3
    assert checks.number(3, "x", "f") == 3.0


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (checks.text, 3, "f: it must be a str, not int"),
        (checks.text, "ab\ud800", "f: it cannot be encoded as UTF-8: lone surrogate U+D800 at character 2"),
        (checks.tokens, [1, -1], "f: it must be token ids from 0 to 4294967295, not -1"),
        (checks.tokens, [1 << 32], "f: it must be token ids from 0 to 4294967295, not 4294967296"),
        (checks.tokens, ["a"], "f: it must be token ids from 0 to 4294967295, not 'a'"),
        (checks.tokens, "ab", "f: it must be token ids from 0 to 4294967295, not str"),
        (checks.tokens, 3, "f: it must be token ids from 0 to 4294967295, not int"),
        (checks.whole, 1.0, "f: it must be an int, not float"),
        (checks.number, None, "f: it must be a number, not NoneType"),
        (checks.number, 10**400, "f: it must be a finite number, not 1000"),
    ],
)
def test_what_is_wrong_is_named(check: Any, value: Any, message: str) -> None:
    """The error says which call, which argument, and what was expected; it is a ValueError too."""
    with pytest.raises(ValueError, match="it") as caught:
        check(value, "it", "f")

    assert isinstance(caught.value, InvalidArgument)
    assert str(caught.value).startswith(message)
