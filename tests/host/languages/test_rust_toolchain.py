"""Which Rust is here."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from tartlet.errors import BuildError
from tartlet.languages import rust_toolchain
from tartlet.languages.rust_toolchain import (
    STDIO,
    Stock,
    crates_of,
    environment,
    find_debian,
    find_stock,
    linker,
    require_toolchain,
    toml_text,
)


def program(path: Path, prints: str) -> None:
    """A program that prints something."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "{prints}"\n')
    path.chmod(0o755)


def test_rust_that_can_build_for_wasi_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a standard library for the target; without one it is not what is looked for."""
    program(tmp_path / "cargo", "cargo 1.99.0")
    program(tmp_path / "rustc", str(tmp_path / "lib"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    assert find_stock() is None
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libstd-0.rlib").touch()
    assert isinstance(require_toolchain(), Stock)


def test_debians_packages_are_found_together(tmp_path: Path) -> None:
    """Cargo, compiler and source; one alone is of no use."""
    program(tmp_path / "bin" / "cargo", "cargo 1.96.0")
    program(tmp_path / "bin" / "rustc", "rustc 1.96.0 (made for this)")
    assert find_debian(tmp_path) is None

    stdio = tmp_path / "lib" / "rustlib" / "src" / "rust" / "library" / STDIO
    stdio.parent.mkdir(parents=True)
    assert find_debian(tmp_path) is None  # a version in which that is elsewhere

    stdio.touch()
    found = find_debian(tmp_path)
    assert found is not None
    assert found.version == "1.96.0"
    assert found.crates == tmp_path / "share" / "cargo" / "registry"


def test_without_rust_it_is_told_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways, with the packages' names."""
    monkeypatch.setattr(rust_toolchain, "find_toolchain", lambda: None)

    with pytest.raises(BuildError, match="Rust that can build for WebAssembly is not installed") as caught:
        require_toolchain()
    assert "rustup target add wasm32-wasip2" in caught.value.hint
    assert "apt-get install rustc-web cargo-web rust-web-src" in caught.value.hint


def test_the_linker_is_zigs_or_one_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What rustc says first is not for all of them; without any it is told what to install."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: "/opt/wasm-ld-22" if name == "wasm-ld-22" else None)
    script = linker()
    assert script.is_relative_to(tmp_path)
    assert script.name == "wasm-ld"  # by which rustc knows what it is
    assert 'exec /opt/wasm-ld-22 "$@"' in script.read_text()

    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(BuildError, match="no linker for WebAssembly") as caught:
        linker()
    assert "pip install ziglang" in caught.value.hint


def test_what_would_make_another_build_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as flags that the caller has set for other work."""
    monkeypatch.setenv("RUSTFLAGS", "-Ctarget-cpu=native")
    monkeypatch.setenv("KEPT", "1")
    given = environment(MORE="2")

    assert "RUSTFLAGS" not in given
    assert (given["KEPT"], given["MORE"]) == ("1", "2")


def test_paths_are_written_as_toml_has_them() -> None:
    """Quotes and backslashes, too."""
    assert toml_text('a "b" \\c') == '"a \\"b\\" \\\\c"'
    assert crates_of(Path("/x"))[-1] == 'source.local.directory="/x"'
