"""Refused and failed calls, as the error records of wit/ (`types.error`) that the program receives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tartlet.wasm.host_function import Err
from tartlet_engine.api import EngineError, ErrorCode


def refusal(code: ErrorCode, message: str, hint: str = "") -> Err:
    """The error to raise from a host function: what happened, with numbers, and what to do about it."""
    return Err({"code": code.value, "message": message, "hint": hint})


def invalid_argument(message: str, hint: str = "") -> Err:
    """An argument is out of its range."""
    return refusal(ErrorCode.INVALID_ARGUMENT, message, hint)


def engine_refusal(error: EngineError) -> Err:
    """An error that the engine reports."""
    return refusal(error.code, error.message, error.hint)


@contextmanager
def refusing_value_errors() -> Iterator[None]:
    """Turn a `ValueError` of a model's text side into a refusal."""
    try:
        yield
    except ValueError as error:
        raise invalid_argument(str(error)) from error
