"""Tartlet: sandboxed programs that run next to a language model."""

from typing import TYPE_CHECKING, Any

from tartlet.errors import (
    BuildError,
    ConfigError,
    ConflictError,
    DeadlockError,
    EngineStoppedError,
    GuestError,
    GuestTrapError,
    InvalidComponentError,
    InvalidHandleError,
    LimitExceededError,
    ModelError,
    NotFoundError,
    ProgramError,
    QuotaError,
    RunCancelledError,
    RunError,
    TartletError,
    UnavailableError,
    WorkerLostError,
)
from tartlet.events import Log, Output, RunEvent, RunUsage, Variable
from tartlet.limits import Limits

if TYPE_CHECKING:
    from tartlet import models, sync
    from tartlet.host import Host, HostStats
    from tartlet.run import Run
    from tartlet.runtime.program import Program

__version__ = "0.1.0"

__all__ = [
    "BuildError",
    "ConfigError",
    "ConflictError",
    "DeadlockError",
    "EngineStoppedError",
    "GuestError",
    "GuestTrapError",
    "Host",
    "HostStats",
    "InvalidComponentError",
    "InvalidHandleError",
    "LimitExceededError",
    "Limits",
    "Log",
    "ModelError",
    "NotFoundError",
    "Output",
    "Program",
    "ProgramError",
    "QuotaError",
    "Run",
    "RunCancelledError",
    "RunError",
    "RunEvent",
    "RunUsage",
    "TartletError",
    "UnavailableError",
    "Variable",
    "WorkerLostError",
    "models",
    "sync",
]

_LAZY = {
    "Host": "tartlet.host",
    "HostStats": "tartlet.host",
    "Program": "tartlet.runtime.program",
    "Run": "tartlet.run",
    "models": "tartlet.models",
    "sync": "tartlet.sync",
}
"""Names whose modules load Wasmtime, which `tartlet --help` and the like need not wait for."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_LAZY[name])
    return module if _LAZY[name] == f"{__name__}.{name}" else getattr(module, name)
