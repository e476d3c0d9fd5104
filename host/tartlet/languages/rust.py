"""Rust inferlets: a package with a Cargo.toml, or a single file, built into a component against `guest-sdk/rust`."""

from __future__ import annotations

import hashlib
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

from tartlet.errors import BuildError
from tartlet.languages import rust_toolchain, wasm_tools
from tartlet.languages.guest_sdk import sdk_folder
from tartlet.languages.language import Language, Tool
from tartlet.languages.rust_sysroot import sysroot
from tartlet.languages.rust_toolchain import (
    DEBIAN_TARGET,
    INSTALL,
    RUSTUP_TARGET,
    Debian,
    Stock,
    crates_of,
    debian_environment,
    environment,
    linker,
    require_toolchain,
    toml_text,
)
from tartlet.languages.tool import folder_for, run_tool
from tartlet.locks import exclusive
from tartlet.paths import rust_folder
from tartlet.progress import Progress, silent

NAME = "rust"
MANIFEST = "Cargo.toml"
SDK_CRATE = "tartlet-sdk"
EXPECTED_S = 5.0
_CRATE_TYPE_HINT = 'Write in Cargo.toml:\n[lib]\ncrate-type = ["cdylib"]'
_OFFLINE_HINT = (
    "Debian's Rust takes crates from its packages alone: install librust-NAME-dev for each, allow the versions that "
    "they have, and remove a Cargo.lock that says others. Rust of rustup takes them from crates.io."
)
# A program of a single file may use these crates. The profile makes components small.
_SINGLE_FILE = """\
[package]
name = "program"
version = "0.0.0"
edition = "2021"

[lib]
path = {path}
crate-type = ["cdylib"]

[dependencies]
inferlet = {{ package = "tartlet-sdk", version = "0.1" }}
futures = "0.3"
serde = {{ version = "1", features = ["derive"] }}
serde_json = "1"

[profile.release]
opt-level = "s"
lto = true
codegen-units = 1
panic = "abort"
strip = "debuginfo"
"""


def build_component(source: Path, output: Path, progress: Progress = silent) -> None:
    """Build the program at `source`, a folder with a Cargo.toml or a .rs file, into the component `output`.

    Compiled crates are kept, so that only the first build takes long: some 20 s, and 45 s more where the standard
    library has to be built first.

    Raises:
        BuildError: A tool is missing, and the hint says how to install it; or the program does not compile, and the
            message is what the compiler says.
    """
    toolchain = require_toolchain()
    package = source if source.is_dir() else _single_file(source)
    library = _library(package)
    target = _target_folder(toolchain)
    with exclusive(target.with_suffix(".lock"), "Waiting for another build of Rust", progress):
        if isinstance(toolchain, Stock):
            built = _build_stock(toolchain, package, library, target, progress)
            with folder_for(output) as folder:
                os.replace(shutil.copyfile(built, folder / "component.wasm"), output)
        else:
            built = _build_debian(toolchain, package, library, target, progress)
            wasm_tools.make_component(built, output.absolute(), None, f"Building {output.name}", progress)


def _build_stock(toolchain: Stock, package: Path, library: str, target: Path, progress: Progress) -> Path:
    """Build with Rust that has a standard library for WASI: what comes of it is a component."""
    command = [str(toolchain.cargo), "build", "--release", "--quiet", "--target", RUSTUP_TARGET, *_sdk_arguments()]
    ended = run_tool(
        command,
        folder=package,
        task=_task(library),
        expected_s=EXPECTED_S,
        progress=progress,
        environment=environment(CARGO_TARGET_DIR=str(target)),
    )
    if ended.status != 0:
        raise BuildError(ended.tail)
    progress(_task(library), EXPECTED_S, EXPECTED_S)
    return target / RUSTUP_TARGET / "release" / f"{library}.wasm"


def _build_debian(toolchain: Debian, package: Path, library: str, target: Path, progress: Progress) -> Path:
    """Build with Debian's Rust: what comes of it is a core module."""
    standard_library = sysroot(toolchain, progress)
    prefix = f"CARGO_TARGET_{DEBIAN_TARGET.upper().replace('-', '_')}"
    remaps = {sdk_folder(NAME): "tartlet-sdk", toolchain.crates: "crates", rust_folder(): ""}
    flags = [f"--remap-path-prefix={path}={shown}" for path, shown in remaps.items()]  # no machine's paths in panics
    variables = {f"{prefix}_LINKER": str(linker())}
    variables["CARGO_TARGET_DIR"] = str(target)
    variables["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(["--sysroot", str(standard_library), *flags])
    command = [str(toolchain.cargo), "build", "--release", "--quiet", "--offline", "--target", DEBIAN_TARGET]
    command += [*crates_of(toolchain.crates), *_sdk_arguments()]
    ended = run_tool(
        command,
        folder=package,
        task=_task(library),
        expected_s=EXPECTED_S,
        progress=progress,
        environment=debian_environment(toolchain, **variables),
    )
    if ended.status != 0:
        is_about_crates = "no matching package" in ended.log or "failed to select a version" in ended.log
        raise BuildError(ended.tail, hint=_OFFLINE_HINT if is_about_crates else "")
    progress(_task(library), EXPECTED_S, EXPECTED_S)
    return target / DEBIAN_TARGET / "release" / f"{library}.wasm"


def _target_folder(toolchain: Stock | Debian) -> Path:
    """Where cargo keeps what it has compiled with this toolchain and this SDK; others would undo each other's work."""
    digest = hashlib.sha256(f"{toolchain.cargo}\0{toolchain.version}\0{sdk_folder(NAME)}".encode()).hexdigest()
    return rust_folder() / f"target-{digest[:16]}"


def _task(library: str) -> str:
    return f"Compiling {library}"


def _sdk_arguments() -> list[str]:
    """Arguments that let cargo take the SDK which belongs to this version of Tartlet."""
    return [
        "--config", f"patch.crates-io.{SDK_CRATE}.path={toml_text(sdk_folder(NAME))}",
    ]  # fmt: skip


def _single_file(source: Path) -> Path:
    """Make a package of a program that is one file; its folder."""
    digest = hashlib.sha256(bytes(source.resolve())).hexdigest()[:16]
    folder = rust_folder() / "single" / digest
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, folder / source.name)
    (folder / MANIFEST).write_text(_SINGLE_FILE.format(path=toml_text(source.name)), encoding="utf-8")
    return folder


def _library(package: Path) -> str:
    """The name of the library that a package makes. Raises BuildError if it makes none for the host."""
    manifest = package / MANIFEST
    try:
        content: dict[str, Any] = tomllib.loads(manifest.read_text(encoding="utf-8"))
        name, library = content["package"]["name"], content.get("lib", {})
    except FileNotFoundError:
        raise BuildError(f"{package} has no {MANIFEST}", hint="Give a folder with one, or a .rs file.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BuildError(f"{manifest} cannot be read: {error!r}") from error
    if "cdylib" not in library.get("crate-type", library.get("crate_type", ())):
        raise BuildError(f"{manifest} makes no library of the kind cdylib", hint=_CRATE_TYPE_HINT)
    return str(library.get("name", name)).replace("-", "_")


def _tools() -> list[Tool]:
    toolchain = rust_toolchain.find_toolchain()
    rust = Tool("Rust", None if toolchain is None else toolchain.version, INSTALL)
    return [rust] if isinstance(toolchain, Stock) else [rust, wasm_tools.wasm_tools()]


RUST = Language(
    name=NAME,
    title="Rust",
    suffixes=(".rs",),
    main_files=(MANIFEST,),
    build_component=build_component,
    tools=_tools,
)
