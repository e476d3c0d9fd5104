"""Every error that Tartlet raises.

TartletError                   code, hint
├── ConfigError                a setting or argument of the host's own user is wrong
├── ModelError                 a model cannot be found, fetched or loaded
├── ProgramError               a program cannot be run
│   ├── InvalidComponentError  not a component, truncated, wrong world or version, unknown import, missing export
│   └── BuildError             source cannot be built
├── RunError                   one run ended without a result
│   ├── GuestError             the program failed: it returned an error or raised an exception
│   ├── GuestTrapError         the program trapped: unreachable code, out of bounds, call stack exhausted
│   ├── LimitExceededError     a limit was exceeded; has limit, used, allowed
│   ├── InvalidHandleError     the program used a handle that it does not hold
│   ├── DeadlockError          the program waits for something that can never happen
│   ├── RunCancelledError      it was cancelled
│   └── WorkerLostError        of a server: the process that ran it is gone
├── EngineStoppedError         the engine is gone
├── UnavailableError           of a server: there is nobody to do it now; it may help to ask again
├── NotFoundError              of a server: there is no such thing, or it is another tenant's
├── ConflictError              of a server: it is there already, or something else is meant by it
├── QuotaError                 of a server: a tenant may not have more; has limit, used, allowed, retry_after_s
└── WireError                  of a server: a connection between its processes is over, or cannot carry a message
"""

from __future__ import annotations


class TartletError(Exception):
    """Base of all: a message, a stable `code` for programs, and a `hint` what to do (may be empty)."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


def how_to_allow_more(limit: str) -> str:
    """Say how a limit, named as the field of `Limits`, is raised."""
    return f"Allow more with tartlet.Limits({limit}=...), or --limit {limit.removeprefix('max_')}=... of tartlet run."


class ConfigError(TartletError):
    """A setting or argument of the host's own user is wrong."""

    code = "config"


class ModelError(TartletError):
    """A model cannot be found, fetched or loaded."""

    code = "model"


class ProgramError(TartletError):
    """A program cannot be run."""

    code = "program"


class InvalidComponentError(ProgramError):
    """The bytes are not a component that this host can run; `code` says which way.

    The codes: `not_a_component`, `truncated`, `wrong_world`, `unknown_import`, `missing_export`, `wrong_version`,
    `compile_failed`; for too much of something, those of `tartlet.component_limits.COUNTED`, such as
    `too_many_functions`; of a server, `compile_limit` for what takes too much to compile.
    """

    code = "invalid_component"


class BuildError(ProgramError):
    """Source cannot be built into a component."""

    code = "build"


class RunError(TartletError):
    """One run ended without a result."""

    code = "run"


class GuestError(RunError):
    """The program failed: the message is its own, with its traceback."""

    code = "guest_error"


class GuestTrapError(RunError):
    """The program trapped. The message has Wasmtime's reason and backtrace."""

    code = "trap"


class LimitExceededError(RunError):
    """The run exceeded one of its limits.

    Codes: `memory_limit`, `cpu_limit`, `deadline_exceeded`, `token_budget`, `kv_limit`, `handle_limit`, `output_limit`,
    `host_call_limit`, `call_limit` (too much in one call). `details`, such as the program's traceback, come below the
    numbers in the message.
    """

    def __init__(
        self, code: str, *, limit: str, used: float, allowed: float, details: str = "", hint: str = ""
    ) -> None:
        message = f"{limit} allows {allowed:,}, used {used:,}"
        super().__init__(
            f"{message}\n{details}" if details else message, hint=hint or how_to_allow_more(limit), code=code
        )
        self.limit = limit  # the field of `Limits`
        self.used = used
        self.allowed = allowed


def memory_limit_error(*, used: int, allowed: int, details: str) -> LimitExceededError:
    """The error of a run that has used up its memory."""
    return LimitExceededError("memory_limit", limit="max_memory_bytes", used=used, allowed=allowed, details=details)


class InvalidHandleError(RunError):
    """The program used a handle or event that it does not hold."""

    code = "invalid_handle"


class DeadlockError(RunError):
    """The program waits for something that can never happen."""

    code = "deadlock"


class RunCancelledError(RunError):
    """The run was cancelled."""

    code = "cancelled"


class WorkerLostError(RunError):
    """The process that ran the program is gone, and what the run held with it."""

    code = "worker_lost"


class UnavailableError(TartletError):
    """There is nobody to do what was asked for, or too much is asked for at once. Nothing has been done of it."""

    code = "unavailable"


class NotFoundError(TartletError):
    """There is no such thing, or it is another tenant's: the two cannot be told apart."""

    code = "not_found"


class ConflictError(TartletError):
    """It is there already, or what was meant by a name or key is not what it stands for. Nothing has been changed."""

    code = "conflict"


class QuotaError(TartletError):
    """A tenant may not have more of something, at once or for now. Nothing has been done of what was asked for.

    Codes: `rate_limited` (too much in the last minute), `queue_full`, `queue_timeout` (waited too long for a place),
    `quota` (too many or too large things are kept).

    Args:
        code: One of these.
        limit: The field of the tenant's limits.
        used: How much of it is used, with what was asked for.
        allowed: How much may be.
        retry_after_s: After how many seconds it may help to ask again; None: it will not help to wait.
        hint: What to do; if empty, it follows from the rest.
    """

    code = "quota"

    def __init__(
        self, code: str, *, limit: str, used: float, allowed: float, retry_after_s: float | None = None, hint: str = ""
    ) -> None:
        if not hint:
            waiting = "" if retry_after_s is None else f"Ask again in {retry_after_s:,.1f} s. "
            hint = f"{waiting}The server's operator can allow more: tartlet tenant set NAME --limit {limit}=..."
        super().__init__(f"{limit} allows {allowed:,}, used {used:,}", hint=hint, code=code)
        self.limit = limit
        self.used = used
        self.allowed = allowed
        self.retry_after_s = retry_after_s


class EngineStoppedError(TartletError):
    """The engine is gone."""

    code = "engine_stopped"


class WireError(TartletError):
    """A connection between the server's processes is over, or cannot carry a message.

    Codes: `closed`, `malformed`, `frame_too_large`, `slow_reader`. Only the server's own processes see it.
    """

    code = "wire"
