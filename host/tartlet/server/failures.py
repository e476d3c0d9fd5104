"""Errors as they cross from one process to another, and as the server's clients see them."""

from __future__ import annotations

import msgspec

from tartlet import errors
from tartlet.errors import LimitExceededError, QuotaError, TartletError


class Failure(msgspec.Struct, frozen=True):
    """A `TartletError`, written down."""

    kind: str
    """The name of its class."""
    code: str
    message: str
    hint: str = ""
    limit: str | None = None
    """Of a `LimitExceededError` or `QuotaError`: which limit; with what was used and what was allowed."""
    used: float | None = None
    allowed: float | None = None


def to_failure(error: TartletError) -> Failure:
    """Write an error down."""
    kind = type(error).__name__
    if isinstance(error, LimitExceededError | QuotaError):
        return Failure(kind, error.code, error.message, error.hint, error.limit, error.used, error.allowed)
    return Failure(kind, error.code, error.message, error.hint)


def to_error(failure: Failure) -> TartletError:
    """Make the error again. A class that this version does not know becomes a `TartletError`."""
    kind = getattr(errors, failure.kind, None)
    if not (isinstance(kind, type) and issubclass(kind, TartletError)):
        kind = TartletError
    error: TartletError = kind.__new__(kind)
    TartletError.__init__(error, failure.message, hint=failure.hint, code=failure.code)
    if isinstance(error, LimitExceededError | QuotaError):
        error.limit, error.used, error.allowed = failure.limit or "", failure.used or 0.0, failure.allowed or 0.0
    if isinstance(error, QuotaError):
        error.retry_after_s = None  # it is not written down: by the time somebody reads it, it is another
    return error
