"""wasi:cli: an empty environment, the standard streams, no terminal, and an exit that is an error."""

from __future__ import annotations

from typing import Any, NoReturn

from tartlet.errors import GuestError
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import Interfaces
from tartlet.wasm.wasi.state import STDERR, STDIN, STDOUT


def _nothing(_fiber: Fiber) -> list[Any]:
    return []


def _none(_fiber: Fiber) -> None:
    return None


def _drop(_fiber: Fiber, _number: int) -> None:
    """Do nothing: no terminal was handed out."""


def _exit(_fiber: Fiber, status: tuple[bool, Any]) -> NoReturn:
    outcome = "success" if status[0] else "failure"
    raise GuestError(
        f"the program called exit (with {outcome})", hint="Return a result, or raise an error, instead of exiting."
    )


INTERFACES: Interfaces = {
    "wasi:cli/environment": {
        "get-environment": _nothing,
        "get-arguments": _nothing,
        "initial-cwd": _none,
    },
    "wasi:cli/exit": {"exit": _exit},
    "wasi:cli/stdin": {"get-stdin": lambda _fiber: STDIN},
    "wasi:cli/stdout": {"get-stdout": lambda _fiber: STDOUT},
    "wasi:cli/stderr": {"get-stderr": lambda _fiber: STDERR},
    "wasi:cli/terminal-input": {"terminal-input": _drop},
    "wasi:cli/terminal-output": {"terminal-output": _drop},
    "wasi:cli/terminal-stdin": {"get-terminal-stdin": _none},
    "wasi:cli/terminal-stdout": {"get-terminal-stdout": _none},
    "wasi:cli/terminal-stderr": {"get-terminal-stderr": _none},
}
