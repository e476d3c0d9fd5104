"""Finding Node, and the packages that npm installs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tartlet.errors import BuildError
from tartlet.languages import node
from tartlet.languages.node import INSTALL, esbuild_command, node_command, node_tool, packages
from tartlet.progress import silent


def tool(path: Path, text: str) -> Path:
    """Write an executable script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_without_node_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on the PATH nor as the Python package."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(node, "_package_folder", lambda: None)

    assert node_tool().version is None
    with pytest.raises(BuildError, match=r"Node\.js is not installed") as caught:
        node_command()
    assert caught.value.hint == INSTALL


def test_a_node_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has its version, and what is needed."""
    old = tool(tmp_path / "node", "echo v18.1.0")
    monkeypatch.setattr(shutil, "which", lambda name: str(old))

    with pytest.raises(BuildError, match=r"of version 18\.1\.0, and 20 or later is needed"):
        node_command()


def test_the_python_package_has_a_node_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is on the PATH."""
    (tmp_path / "bin").mkdir()
    there = tool(tmp_path / "bin" / "node", "echo v24.0.0")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(node, "_package_folder", lambda: tmp_path)

    assert node_command() == [str(there)]
    assert node_tool().version == "24.0.0"


def test_npm_installs_once_what_the_lock_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it does so where it disturbs nobody: a folder appears when it is complete."""
    calls = tmp_path / "calls"
    npm = tool(
        tmp_path / "npm",
        f"echo $2 >> {calls}; mkdir -p node_modules/@esbuild/any/bin; touch node_modules/@esbuild/any/bin/esbuild",
    )
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(node, "node_command", lambda: ["/bin/sh"])
    monkeypatch.setattr(node, "_find_npm", lambda: [str(npm)])

    modules = packages(silent)
    assert packages(silent) == modules
    assert esbuild_command(silent) == [str(modules / "@esbuild" / "any" / "bin" / "esbuild")]
    assert calls.read_text() == "--omit=dev\n"
    assert (modules.parent / "package-lock.json").is_file()


def test_what_npm_says_is_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left behind."""
    npm = tool(tmp_path / "npm", "echo the registry is not there; exit 1")
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(node, "node_command", lambda: ["/bin/sh"])
    monkeypatch.setattr(node, "_find_npm", lambda: [str(npm)])

    with pytest.raises(BuildError, match="the registry is not there"):
        packages(silent)
    assert [path.suffix for path in (tmp_path / "home" / "javascript").iterdir()] == [".lock"]
