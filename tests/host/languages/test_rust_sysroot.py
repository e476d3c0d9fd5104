"""The standard library that is built from Debian's source."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tartlet.errors import BuildError
from tartlet.languages.rust_sysroot import sysroot
from tartlet.languages.rust_toolchain import STDIO, Debian
from tartlet.progress import silent


@pytest.fixture
def fresh_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A TARTLET_HOME with nothing in it."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


COMPILER = """#!/bin/sh
case "$1" in
  -vV) echo "host: this-machine" ;;
  *) echo "{folder}/rustlib/this-machine/lib" ;;
esac
"""
CARGO = """#!/bin/sh
echo "$@" >> "{folder}/calls"
cp "$PWD/sysroot/lib/rustlib/src/rust/library/std/src/sys/stdio/unsupported.rs" "{folder}/used.rs"
deps="$CARGO_TARGET_DIR/wasm32-unknown-unknown/release/deps"
mkdir -p "$deps"
touch "$deps/libstd-1.rlib" "$deps/libsysroot-1.rlib" "$deps/libstd-1.rmeta"
exit {status}
"""


def toolchain(folder: Path, status: int = 0) -> Debian:
    """One whose cargo and compiler do as little as possible."""
    for name, text in (("rustc", COMPILER), ("cargo", CARGO)):
        (folder / name).write_text(text.format(folder=folder, status=status))
        (folder / name).chmod(0o755)
    (folder / "rustlib" / "this-machine").mkdir(parents=True)
    stdio = folder / "library" / STDIO
    stdio.parent.mkdir(parents=True)
    stdio.write_text("goes nowhere")
    return Debian(folder / "cargo", folder / "rustc", "1.96.0", folder / "library", folder / "registry")


def test_it_is_built_once_with_its_own_output(tmp_path: Path, fresh_home: Path) -> None:
    """What it prints goes to the host; the libraries are kept, and the source is not."""
    found = sysroot(toolchain(tmp_path), silent)

    assert found.is_relative_to(fresh_home)
    assert [path.name for path in found.rglob("*") if path.is_file()] == ["libstd-1.rlib"]
    assert "tartlet:inferlet/log@0.1.0" in (tmp_path / "used.rs").read_text()
    assert (tmp_path / "library" / STDIO).read_text() == "goes nowhere"
    assert sysroot(toolchain_again(tmp_path), silent) == found
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


def toolchain_again(folder: Path) -> Debian:
    """The same toolchain, found again."""
    return Debian(folder / "cargo", folder / "rustc", "1.96.0", folder / "library", folder / "registry")


def test_a_failed_build_is_told_and_leaves_nothing(tmp_path: Path, fresh_home: Path) -> None:
    """The next build begins anew."""
    with pytest.raises(BuildError, match="standard library cannot be built"):
        sysroot(toolchain(tmp_path, status=101), silent)

    assert [name for name in os.listdir(fresh_home / "rust") if "sysroot" in name and not name.endswith(".lock")] == []
