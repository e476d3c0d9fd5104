"""What went wrong, as text for the author: the traceback with the author's own frames, and what the sandbox lacks."""

from __future__ import annotations

import os
import traceback
from collections.abc import Collection, Mapping

import tartlet_sdk
from tartlet_sdk.errors import ArgumentError, ProgramError, TartletError

SDK_FOLDER = os.path.dirname(tartlet_sdk.__file__)
RUNNER_FOLDER = os.path.dirname(__file__)


def explain(error: BaseException, files: Collection[str], unavailable: Mapping[str, str]) -> str:
    """The error as text; never raises.

    Args:
        error: What the program raised.
        files: Names of the author's files.
        unavailable: Why a module of the standard library is not there, by name.
    """
    try:
        if isinstance(error, SystemExit):
            return explain_exit(error)
        if isinstance(error, ArgumentError | ProgramError):  # no line of the author's is to blame
            return str(error)
        if isinstance(error, ModuleNotFoundError):
            error.add_note(explain_missing(error.name or "", files, unavailable))
        report = traceback.TracebackException.from_exception(error, compact=True)
        cut(report, error, files)
        return "".join(report.format()).rstrip("\n")
    except BaseException:  # out of memory or stack: what is left must be enough for one line
        return f"{type(error).__name__}: {error}" if isinstance(error, TartletError) else type(error).__name__


def explain_exit(error: SystemExit) -> str:
    """What `sys.exit` was called with."""
    return error.code if isinstance(error.code, str) else f"the program exited with status {error.code}"


def explain_missing(name: str, files: Collection[str], unavailable: Mapping[str, str]) -> str:
    """Why a module cannot be imported."""
    top = name.partition(".")[0]
    for known in (name, top):
        if known in unavailable:
            return f"{known} is part of the standard library, but not available in the sandbox: {unavailable[known]}."
    modules = ", ".join(sorted(file for file in files if file.endswith(".py")))
    return f"Modules are imported from the program's folder and the standard library. The program has: {modules}."


def cut(report: traceback.TracebackException, error: BaseException, files: Collection[str]) -> None:
    """Drop the frames that are not the author's business, in the report and in all that it is caused by."""
    is_ours = isinstance(error, TartletError)
    frames = list(report.stack)
    first = next((k for k, frame in enumerate(frames) if frame.filename in files), None)
    if first is not None:
        frames = [frame for frame in frames[first:] if not is_hidden(frame.filename, is_ours)]
    elif is_ours or isinstance(error, SyntaxError):
        frames = []
    report.stack[:] = frames
    for part, cause in ((report.__cause__, error.__cause__), (report.__context__, error.__context__)):
        if part is not None and cause is not None:
            cut(part, cause, files)
    if isinstance(error, BaseExceptionGroup):
        for part, member in zip(report.exceptions or (), error.exceptions, strict=False):
            cut(part, member, files)


def is_hidden(filename: str, is_ours: bool) -> bool:
    """Whether a frame below the author's is left out: import machinery, the runner, and the SDK for its own errors."""
    return filename.startswith(("<frozen", RUNNER_FOLDER)) or (is_ours and filename.startswith(SDK_FOLDER))
