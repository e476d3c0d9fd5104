"""Runs componentize-py, which makes a component of a Python module and takes a snapshot of the interpreter."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.immortal import make_immortal
from tartlet.progress import Progress

TOOL = "componentize-py"
RUN_TOOL = "import sys; from componentize_py import script; sys.exit(script())"  # it has no __main__
WIT = Path(__file__).parent / "wit"
EXPECTED_BUILD_S = 10.0
LOG_TAIL = 4000  # characters of a failed build's log that are shown
ERROR_MARKS = "tartlet-build-error:\n", "\ntartlet-build-error-end"  # around a program's own error, see built_app.py
NOT_PASSED_ON = ("PATH", "PYTHONPATH", "VIRTUAL_ENV")  # with these it would look for packages that are installed here


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a component is made of."""

    world: str
    """The world in wit/."""
    app: str
    """The module that has the world's exports."""
    python_path: Sequence[Path]
    """The folders to import from, the app too."""


def version() -> str:
    """The version of componentize-py. Raises `BuildError` if it is not installed."""
    if importlib.util.find_spec("componentize_py") is None:
        raise BuildError(f"{TOOL} is not installed", hint="Install it with: pip install 'tartlet[build]'")
    return importlib.metadata.version(TOOL)


def build(recipe: Recipe, output: Path, task: str, progress: Progress) -> None:
    """Build a component: some 10 s, 0.5 GB of memory. `output` appears only when it is complete.

    Raises:
        BuildError: It failed; the message is the program's own error, or the end of the tool's log.
    """
    version()
    output.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=".tartlet-", dir=output.parent) as folder,
        tempfile.TemporaryFile() as log,  # elsewhere: it is to tell that this disk is full
    ):
        built = Path(folder, "component.wasm")
        command = [sys.executable, "-c", RUN_TOOL, "--wit-path", str(WIT.resolve()), "--world", recipe.world]
        command += ["componentize", recipe.app, "--output", str(built)]
        command += [argument for entry in recipe.python_path for argument in ("--python-path", str(entry))]
        status = _run(command, Path(folder), log.fileno(), task, progress)
        if status != 0:
            log.seek(0)
            raise BuildError(_reason(log.read().decode(errors="replace"), status))
        built.write_bytes(make_immortal(built.read_bytes()))
        os.replace(built, output)
    progress(task, EXPECTED_BUILD_S, EXPECTED_BUILD_S)


def _run(command: list[str], folder: Path, sink: int, task: str, progress: Progress) -> int:
    """Run the tool and tell how far it may be; its exit status. It is killed if this is interrupted."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    begun = time.monotonic()
    process = subprocess.Popen(
        command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
    )
    try:
        while True:
            try:
                return process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                progress(task, min(0.95 * EXPECTED_BUILD_S, time.monotonic() - begun), EXPECTED_BUILD_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _reason(log: str, status: int) -> str:
    """What to tell of a failed build."""
    begin, end = ERROR_MARKS
    _, found, rest = log.partition(begin)
    if found:
        return rest.partition(end)[0].strip()
    log, _, _ = log.partition("\nStack backtrace:")  # of the tool's own code
    return f"{TOOL} failed with status {status}:\n{log.strip()[-LOG_TAIL:]}"
