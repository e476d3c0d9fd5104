"""How an error looks on the terminal, and which exit code it gives."""

from __future__ import annotations

import errno
import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

import typer

from tartlet.cli.safe_text import safe_text
from tartlet.errors import (
    ConfigError,
    ConflictError,
    EngineStoppedError,
    LimitExceededError,
    ModelError,
    NotFoundError,
    ProgramError,
    QuotaError,
    RunCancelledError,
    RunError,
    TartletError,
    UnavailableError,
)

PROGRAM_FAILED, WRONG_USE, LIMIT_EXCEEDED, CANNOT_LOAD, INTERNAL, CANCELLED = 1, 2, 3, 4, 70, 130

_EXIT_CODES: tuple[tuple[type[TartletError], int], ...] = (  # the first that fits
    (RunCancelledError, CANCELLED),
    (LimitExceededError, LIMIT_EXCEEDED),
    (RunError, PROGRAM_FAILED),
    (ConfigError, WRONG_USE),
    (NotFoundError, WRONG_USE),
    (ConflictError, WRONG_USE),
    (QuotaError, LIMIT_EXCEEDED),
    (UnavailableError, CANNOT_LOAD),
    (ProgramError, CANNOT_LOAD),
    (ModelError, CANNOT_LOAD),
    (EngineStoppedError, INTERNAL),
)


_REFUSED_WRITES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)

P = ParamSpec("P")


def reporting(command: Callable[P, None]) -> Callable[P, None]:
    """Make a command end with a readable error and one of the documented exit codes, whatever it raises."""

    @functools.wraps(command)
    def reported(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(report(error)) from None

    return reported


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error, as `tartlet --help` documents them."""
    if isinstance(error, KeyboardInterrupt):
        return CANCELLED
    if _is_refused_write(error):
        return CANNOT_LOAD
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), INTERNAL)


def report(error: BaseException) -> int:
    """Tell the user on stderr what went wrong and what to do, and return the exit code.

    A Python traceback of ours appears only if TARTLET_DEBUG is set.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if os.environ.get("TARTLET_DEBUG"):
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, KeyboardInterrupt | RunCancelledError):
        console.print("cancelled", style="yellow")
    elif isinstance(error, TartletError):
        console.print(Text.assemble((f"error[{error.code}] ", "bold red"), safe_text(error.message.rstrip())))
        if error.hint:
            console.print(Text.assemble(("hint ", "bold cyan"), safe_text(error.hint)))
    elif _is_refused_write(error):
        console.print(Text.assemble(("error[disk] ", "bold red"), safe_text(str(error))))
        hint = "Free some space, or let TARTLET_HOME name a folder that can be written to."
        console.print(Text.assemble(("hint ", "bold cyan"), hint))
    else:
        console.print(
            Text.assemble(("internal error ", "bold red"), f"{type(error).__name__}: {safe_text(str(error))}")
        )
        console.print(Text.assemble(("hint ", "bold cyan"), "this is a fault of Tartlet; TARTLET_DEBUG=1 shows where"))
    return exit_code(error)


def _is_refused_write(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _REFUSED_WRITES
