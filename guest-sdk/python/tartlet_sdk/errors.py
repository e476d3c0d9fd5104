"""Every error that the SDK raises: one class for each code of the contract, and a few of the SDK's own.

TartletError            code, message, hint, call
├── InvalidArgument     an argument is out of its range (also a ValueError)
│   └── ArgumentError   the run's input does not fit the inferlet's parameters
├── NotFound, AlreadyExists, PermissionDenied, QuotaExceeded, Unsupported, Unavailable, Internal
├── KvExhausted         the KV cache has no room, or could never have enough
├── ContextOverflow     the context would grow longer than the model's context length
├── DeadlineExceeded    it took longer than allowed (also a TimeoutError)
├── Cancelled           it was cancelled
├── Deadlock            everything in the run waits, and nothing is left that could wake one of its tasks
├── ProgramFailed       another program that this one relies on failed, such as a controller
├── NotAwaited          a generation was asked for what only its draft has (also an AttributeError)
├── ProgramError        the program cannot be run as an inferlet
│   └── ResultError     the inferlet's result is no JSON
└── OutsideSandbox      the host was called where there is none
"""

from __future__ import annotations

from typing import ClassVar


class TartletError(Exception):
    """A call that was refused or failed.

    `message` says what happened, `hint` what to do about it (may be empty), `call` which call of the SDK it was (may be
    empty), and `code` is stable, for programs.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "", call: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.call = call

    def __str__(self) -> str:
        text = f"{self.call}: {self.message}" if self.call else self.message
        return f"{text}\n{self.hint}" if self.hint else text


class InvalidArgument(TartletError, ValueError):
    """An argument is out of its range; the message names it."""

    code = "invalid-argument"


class NotFound(TartletError):
    """There is nothing by that name or id."""

    code = "not-found"


class AlreadyExists(TartletError):
    """The name is taken."""

    code = "already-exists"


class PermissionDenied(TartletError):
    """The run may not do this."""

    code = "permission-denied"


class QuotaExceeded(TartletError):
    """A budget of the run or its tenant would be exceeded."""

    code = "quota-exceeded"


class KvExhausted(TartletError):
    """The request can never fit into the KV cache, or the cache is full and nothing can make room."""

    code = "kv-exhausted"


class ContextOverflow(TartletError):
    """The context would grow longer than the model's context length."""

    code = "context-overflow"


class DeadlineExceeded(TartletError, TimeoutError):
    """It took longer than allowed."""

    code = "deadline-exceeded"


class Cancelled(TartletError):
    """It was cancelled."""

    code = "cancelled"


class Unsupported(TartletError):
    """The model or the host cannot do this."""

    code = "unsupported"


class Unavailable(TartletError):
    """Not now: the context is busy, or the engine is not there."""

    code = "unavailable"


class Internal(TartletError):
    """A fault of Tartlet's own."""

    code = "internal"


class Deadlock(TartletError):
    """Everything in the run waits, and nothing is left that could wake one of its tasks."""

    code = "deadlock"


class ProgramFailed(TartletError):
    """Another program that this one relies on failed, such as a controller: the message has its text and its log."""

    code = "program-failed"


class ArgumentError(InvalidArgument):
    """The run's input does not fit the inferlet's parameters."""


class NotAwaited(TartletError, AttributeError):
    """A generation was asked for what only its draft has."""

    code = "not-awaited"


class ProgramError(TartletError):
    """The program cannot be run as an inferlet."""

    code = "program"


class ResultError(ProgramError):
    """The inferlet's result cannot be written as JSON."""


class OutsideSandbox(TartletError, RuntimeError):
    """The host was called where there is none."""

    code = "outside-sandbox"


BY_CODE: dict[str, type[TartletError]] = {
    kind.code: kind
    for kind in (
        InvalidArgument,
        NotFound,
        AlreadyExists,
        PermissionDenied,
        QuotaExceeded,
        KvExhausted,
        ContextOverflow,
        DeadlineExceeded,
        Cancelled,
        Unsupported,
        Unavailable,
        Internal,
        Deadlock,
        ProgramFailed,
    )
}
