"""Runs componentize-py, which makes a component of a Python module and takes a snapshot of the interpreter."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.languages.tool import Ended, folder_for, run_tool
from tartlet.progress import Progress

TOOL = "componentize-py"
INSTALL = "Install it with: pip install 'tartlet[build]'"
RUN_TOOL = "import sys; from componentize_py import script; sys.exit(script())"  # it has no __main__
WIT = Path(__file__).parent.parent / "wit"
EXPECTED_BUILD_S = 10.0
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


def installed_version() -> str | None:
    """The version of componentize-py; None if it is not installed."""
    try:
        return importlib.metadata.version(TOOL)
    except importlib.metadata.PackageNotFoundError:
        return None


def version() -> str:
    """The version of componentize-py. Raises `BuildError` if it is not installed."""
    found = installed_version()
    if found is None:
        raise BuildError(f"{TOOL} is not installed", hint=INSTALL)
    return found


def build(recipe: Recipe, output: Path, task: str, progress: Progress) -> None:
    """Build a component: some 10 s, 0.5 GB of memory. `output` appears only when it is complete.

    Raises:
        BuildError: It failed; the message is the program's own error, or the end of the tool's log.
    """
    version()
    environment = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    with folder_for(output) as folder:
        built = folder / "component.wasm"
        command = [sys.executable, "-c", RUN_TOOL, "--wit-path", str(WIT.resolve()), "--world", recipe.world]
        command += ["componentize", recipe.app, "--output", str(built)]
        command += [argument for entry in recipe.python_path for argument in ("--python-path", str(entry))]
        ended = run_tool(
            command,
            folder=folder,
            task=task,
            expected_s=EXPECTED_BUILD_S,
            progress=progress,
            environment=environment,
        )
        if ended.status != 0:
            raise BuildError(_reason(ended))
        from tartlet.languages.immortal import make_immortal  # it reads Wasm, of which a server's front knows nothing

        built.write_bytes(make_immortal(built.read_bytes()))
        os.replace(built, output)
    progress(task, EXPECTED_BUILD_S, EXPECTED_BUILD_S)


def _reason(ended: Ended) -> str:
    """What to tell of a failed build."""
    begin, end = ERROR_MARKS
    _, found, rest = ended.log.partition(begin)
    if found:
        return rest.partition(end)[0].strip()
    log, _, _ = ended.log.partition("\nStack backtrace:")  # of the tool's own code
    return f"{TOOL} failed with status {ended.status}:\n{Ended(ended.status, log).tail}"
