"""The SDK's errors."""

from __future__ import annotations

from tartlet_sdk import ContextOverflow, DeadlineExceeded, InvalidArgument, TartletError


def test_an_error_says_which_call_what_and_what_to_do() -> None:
    """Its text has the SDK's call, the message and the hint; its parts can be read."""
    error = ContextOverflow("9,000 of 8,192 tokens", hint="Truncate it.", call="Context.fill")

    assert str(error) == "Context.fill: 9,000 of 8,192 tokens\nTruncate it."
    assert (error.code, error.message, error.hint) == (
        "context-overflow",
        "9,000 of 8,192 tokens",
        "Truncate it.",
    )
    assert str(TartletError("it")) == "it"


def test_errors_are_pythons_own_kinds_too() -> None:
    """`except ValueError` and `except TimeoutError` catch what one would expect."""
    assert issubclass(InvalidArgument, ValueError)
    assert issubclass(DeadlineExceeded, TimeoutError)
