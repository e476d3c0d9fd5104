"""Runs the tools that build components."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tartlet.progress import Progress

LOG_TAIL = 4000
"""Characters of a failed tool's log that are shown."""
_MAX_LOG_BYTES = 1 << 20
_VERSION = re.compile(r"\d+(\.\d+)+[\w.+-]*")
_PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a tool has ended."""

    status: int
    """0 if all is well."""
    log: str
    """What it has written to both of its outputs."""

    @property
    def tail(self) -> str:
        """The end of the log, as much as one can read."""
        return self.log.strip()[-LOG_TAIL:]


def run_tool(
    command: Sequence[str | Path],
    *,
    folder: Path,
    task: str,
    expected_s: float,
    progress: Progress,
    environment: Mapping[str, str] | None = None,
    before_start: Callable[[], None] | None = None,
) -> Ended:
    """Run a tool to its end, and tell how far it may be. It is killed if this is interrupted.

    Args:
        command: The program and its arguments.
        folder: The one to run it in.
        task: What is being done, for people. That it is done is for the caller to tell.
        expected_s: How long it takes as a rule.
        progress: Hears of it.
        environment: Instead of this process's own.
        before_start: Called in the process that becomes the tool: takes away what it need not have. Only where there
            is one thread.
    """
    with tempfile.TemporaryFile() as log:  # not in the folder: it is to tell that a disk is full
        begun = time.monotonic()
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=before_start,
        )
        try:
            status = None
            while status is None:
                try:
                    status = process.wait(timeout=0.2)
                except subprocess.TimeoutExpired:
                    progress(task, min(0.95 * expected_s, time.monotonic() - begun), expected_s)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        log.seek(max(0, log.seek(0, os.SEEK_END) - _MAX_LOG_BYTES))
        return Ended(status, log.read().decode(errors="replace"))


def tool_version(command: Sequence[str]) -> str | None:
    """The first version in what a command prints; None if there is no such program, or it does not work.

    Args:
        command: One that prints its version, such as `node --version`.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = _VERSION.search(done.stdout)
    return found[0] if found else done.stdout.strip()[:40] or None


@contextmanager
def folder_for(output: Path) -> Iterator[Path]:
    """A folder beside `output` that goes with the block, so that what is made there can be moved to `output` at once.

    The folder of `output` is made if it is not there.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".tartlet-", dir=output.parent) as folder:
        yield Path(folder)
