"""What went wrong, as text for the author: the traceback with the author's own frames."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Collection, Mapping

import tartlet_sdk
from tartlet_runner import sandbox_notes
from tartlet_runner.output import encodable
from tartlet_sdk.errors import ArgumentError, ProgramError, TartletError

SDK_FOLDER = os.path.dirname(tartlet_sdk.__file__)
RUNNER_FOLDER = os.path.dirname(__file__)
MOST_CHARACTERS = 16_000  # of an error: somebody has to read it


def explain(error: BaseException, files: Collection[str], unavailable: Mapping[str, str]) -> str:
    """The error as text; never raises.

    Args:
        error: What the program raised.
        files: Names of the author's files.
        unavailable: Why a module of the standard library is not there, by name.
    """
    try:
        return shortened(encodable(full_text(error, files, unavailable)))
    except BaseException:  # out of memory or stack: what is left must be enough for one line
        return f"{type(error).__name__}: {error}" if isinstance(error, TartletError) else type(error).__name__


def full_text(error: BaseException, files: Collection[str], unavailable: Mapping[str, str]) -> str:
    """The error as text, however long."""
    if isinstance(error, SystemExit):
        return explain_exit(error)
    if isinstance(error, ArgumentError | ProgramError):  # no line of the author's is to blame
        return str(error)
    sandbox_notes.add(error, files, unavailable)
    report = traceback.TracebackException.from_exception(error, compact=True)
    cut(report, error, files)
    return "".join(report.format()).rstrip("\n")


def shortened(text: str) -> str:
    """A text of bounded length: of a longer one, its beginning and its end."""
    left_out = len(text) - MOST_CHARACTERS
    if left_out <= 0:
        return text
    half = MOST_CHARACTERS // 2
    return f"{text[:half]}\n[{left_out:,} characters left out]\n{text[-half:]}"


def explain_exit(error: SystemExit) -> str:
    """What `sys.exit` was called with."""
    return error.code if isinstance(error.code, str) else f"the program exited with status {error.code}"


def cut(report: traceback.TracebackException, error: BaseException, files: Collection[str]) -> None:
    """Drop the frames that are not the author's business, in the report and in all that it is caused by."""
    is_ours = isinstance(error, TartletError | asyncio.CancelledError)
    frames = list(report.stack)
    is_sdk_shown = not is_ours and bool(frames) and frames[-1].filename.startswith(SDK_FOLDER)
    first = next((k for k, frame in enumerate(frames) if frame.filename in files), None)
    if first is not None:
        frames = [frame for frame in frames[first:] if not is_hidden(frame.filename, is_sdk_shown)]
    elif is_ours or isinstance(error, SyntaxError):
        frames = []
    report.stack[:] = frames
    for part, cause in ((report.__cause__, error.__cause__), (report.__context__, error.__context__)):
        if part is not None and cause is not None:
            cut(part, cause, files)
    shown = report.__cause__
    if shown is not None and not shown.stack and isinstance(error.__cause__, asyncio.CancelledError):
        report.__cause__ = None  # how `timeout` and `wait_for` give up what they wait for
    if isinstance(error, BaseExceptionGroup):
        for part, member in zip(report.exceptions or (), error.exceptions, strict=False):
            cut(part, member, files)


def is_hidden(filename: str, is_sdk_shown: bool) -> bool:
    """Whether a frame below the author's is left out: import machinery, the runner, the SDK unless it is shown."""
    return filename.startswith(("<frozen", RUNNER_FOLDER)) or (not is_sdk_shown and filename.startswith(SDK_FOLDER))
