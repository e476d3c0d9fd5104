"""Which Rust is here, and what it needs to build for WebAssembly.

Two are known. Rust with a standard library for wasm32-wasip2, as rustup installs it: `cargo` then does all there is to
do. And Debian's `rustc-web` with `rust-web-src`, which has the standard library only as source: it is built once (see
`rust_sysroot`), for wasm32-unknown-unknown, and crates are those of Debian's `librust-*-dev`: nothing is fetched.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.languages.tool import tool_version
from tartlet.paths import rust_folder

RUSTUP_TARGET = "wasm32-wasip2"
DEBIAN_TARGET = "wasm32-unknown-unknown"
STDIO = Path("std", "src", "sys", "stdio", "unsupported.rs")
"""The file of the standard library that has no output, and is replaced; below its folder `library`."""
INSTALL = (
    f"Install Rust with rustup (https://rustup.rs), then: rustup target add {RUSTUP_TARGET}. Or on Debian: "
    "apt-get install rustc-web cargo-web rust-web-src librust-futures-dev librust-serde-json-dev "
    "librust-serde-derive-dev"
)
INSTALL_LINKER = "Install one with: pip install ziglang; or: apt-get install lld-22"
_LINKERS = ("wasm-ld", "wasm-ld-22", "rust-lld")
_NOT_PASSED_ON = (
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "CARGO_BUILD_TARGET",
)


@dataclass(frozen=True, slots=True)
class Stock:
    """Rust with a standard library for wasm32-wasip2."""

    cargo: Path
    version: str


@dataclass(frozen=True, slots=True)
class Debian:
    """Debian's Rust, with its standard library as source."""

    cargo: Path
    rustc: Path
    version: str
    source: Path
    """The folder `library` of the standard library."""
    crates: Path
    """Where Debian's packages put the sources of crates."""


def find_toolchain() -> Stock | Debian | None:
    """Rust that can build for WebAssembly, or None. A standard library that is there already goes first."""
    return find_stock() or find_debian()


def require_toolchain() -> Stock | Debian:
    """Rust that can build for WebAssembly. Raises BuildError that says how to install one."""
    found = find_toolchain()
    if found is None:
        raise BuildError("Rust that can build for WebAssembly is not installed", hint=INSTALL)
    return found


def find_stock() -> Stock | None:
    """The cargo on the PATH, if its rustc has a standard library for wasm32-wasip2."""
    cargo, rustc = shutil.which("cargo"), shutil.which("rustc")
    if cargo is None or rustc is None:
        return None
    command = [rustc, "--print", "target-libdir", "--target", RUSTUP_TARGET]
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    if not any(Path(done.stdout.strip()).glob("libstd-*.rlib")):
        return None
    return Stock(Path(cargo), tool_version([rustc, "--version"]) or "unknown")


def find_debian(root: Path = Path("/usr")) -> Debian | None:
    """Debian's packages, if they are installed below `root`, of a version whose standard library is known here."""
    cargo, rustc = root / "bin" / "cargo", root / "bin" / "rustc"
    source = root / "lib" / "rustlib" / "src" / "rust" / "library"
    if not (cargo.is_file() and rustc.is_file() and (source / STDIO).is_file()):
        return None
    version = tool_version([str(rustc), "--version"])
    return None if version is None else Debian(cargo, rustc, version, source, root / "share" / "cargo" / "registry")


def linker() -> Path:
    """A program that takes what rustc gives to a linker for WebAssembly. Raises BuildError if there is none."""
    if importlib.util.find_spec("ziglang") is not None:
        command = [sys.executable, "-m", "ziglang", "wasm-ld"]
    else:
        found = next(filter(None, map(shutil.which, _LINKERS)), None)
        if found is None:
            raise BuildError("there is no linker for WebAssembly", hint=INSTALL_LINKER)
        command = [found]
    # rustc begins with `-flavor wasm`, which only some of them know. It tells a linker by the name of its file.
    script = f'#!/bin/sh\n[ "$1" = -flavor ] && shift 2\nexec {shlex.join(command)} "$@"\n'
    return _kept_script(rust_folder() / "bin" / "wasm-ld", script)


def environment(**more: str) -> Mapping[str, str]:
    """This process's environment without what would make cargo build something else, and with `more`."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    return {**kept, "CARGO_TERM_COLOR": "never", **more}


def debian_environment(toolchain: Debian, **more: str) -> Mapping[str, str]:
    """The environment for Debian's cargo, which fetches nothing."""
    offline = {"CARGO_NET_OFFLINE": "true", "CARGO_HOME": str(rust_folder() / "cargo")}
    return environment(RUSTC=str(toolchain.rustc), **offline, **more)


def crates_of(folder: Path) -> list[str]:
    """Arguments that let cargo take crates from a folder of sources instead of crates.io."""
    return [
        "--config", 'source.crates-io.replace-with="local"',
        "--config", f"source.local.directory={toml_text(folder)}",
    ]  # fmt: skip


def toml_text(value: object) -> str:
    """A text as TOML writes it, for `--config`."""
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@functools.cache
def _kept_script(path: Path, script: str) -> Path:
    """Write a program, unless it is there already."""
    if not path.is_file() or path.read_text(encoding="utf-8") != script:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(script, encoding="utf-8")
        new.chmod(0o755)
        os.replace(new, path)
    return path
