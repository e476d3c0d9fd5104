"""Rust's standard library for wasm32-unknown-unknown, built from the source that Debian has of it.

It is built once for each version and kept, outside of any repository. One file of it is replaced: there is no standard
output on this target, so `println!` would go nowhere; with `guest-sdk/rust/sysroot/stdio.rs` it goes to the host.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.languages.guest_sdk import sdk_folder
from tartlet.languages.rust_toolchain import DEBIAN_TARGET, STDIO, Debian, crates_of, debian_environment
from tartlet.languages.tool import run_tool
from tartlet.locks import exclusive
from tartlet.paths import rust_folder
from tartlet.progress import Progress

EXPECTED_S = 45.0
TASK = "Building Rust's standard library"
_MANIFEST = """
[package]
name = "sysroot"
edition = "2021"
[profile.release]
opt-level = "s"
panic = "abort"
"""


def sysroot(toolchain: Debian, progress: Progress) -> Path:
    """The folder for rustc's `--sysroot`, built now if it is not there yet: 45 s, 70 MB.

    Safe to call from several processes at once: one builds, the others wait for it.

    Raises:
        BuildError: It does not compile.
    """
    stdio = sdk_folder("rust") / "sysroot" / "stdio.rs"
    digest = hashlib.sha256(f"{toolchain.version}\0{toolchain.source.resolve()}\0".encode() + stdio.read_bytes())
    folder = rust_folder() / f"sysroot-{digest.hexdigest()[:16]}"
    if not folder.is_dir():
        with exclusive(folder.with_suffix(".lock"), f"Waiting for another process: {TASK}", progress):
            if not folder.is_dir():
                _build(toolchain, stdio, folder, progress)
    return folder


def _build(toolchain: Debian, stdio: Path, folder: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(prefix=".sysroot-", dir=folder.parent) as place:
        work = Path(place)
        # A compiler with this sysroot finds the changed source, and its own libraries for this machine beside it.
        root = work / "sysroot" / "lib" / "rustlib"
        library = root / "src" / "rust" / "library"
        shutil.copytree(toolchain.source.resolve(), library)
        shutil.copyfile(stdio, library / STDIO)
        (root / _host(toolchain)).symlink_to(_libraries(toolchain))
        rustc = work / "rustc"
        rustc.write_text(f'#!/bin/sh\nexec {toolchain.rustc} --sysroot {work / "sysroot"} "$@"\n', encoding="utf-8")
        rustc.chmod(0o755)
        (work / "src").mkdir()
        (work / "src" / "lib.rs").touch()
        (work / "Cargo.toml").write_text(_MANIFEST, encoding="utf-8")
        command = [str(toolchain.cargo), "build", "--release", "--offline", "-Zbuild-std=std,panic_abort"]
        command += ["--target", DEBIAN_TARGET, *crates_of(library / "vendor")]
        flags = f"-Cembed-bitcode=yes --remap-path-prefix={library}=library"
        environment = {
            **debian_environment(toolchain),
            "RUSTC": str(rustc),
            "RUSTC_BOOTSTRAP": "1",  # which is what the standard library itself needs
            "CARGO_TARGET_DIR": str(work / "target"),
            f"CARGO_TARGET_{DEBIAN_TARGET.upper().replace('-', '_')}_RUSTFLAGS": flags,
        }
        ended = run_tool(
            command, folder=work, task=TASK, expected_s=EXPECTED_S, progress=progress, environment=environment
        )
        if ended.status != 0:
            raise BuildError(f"Rust's standard library cannot be built:\n{ended.tail}")
        built = root / DEBIAN_TARGET / "lib"
        built.mkdir(parents=True)
        for rlib in (work / "target" / DEBIAN_TARGET / "release" / "deps").glob("*.rlib"):
            if not rlib.name.startswith("libsysroot-"):
                shutil.copyfile(rlib, built / rlib.name)
        shutil.rmtree(root / "src")
        (root / _host(toolchain)).unlink()
        os.replace(work / "sysroot", folder)
    progress(TASK, EXPECTED_S, EXPECTED_S)


def _host(toolchain: Debian) -> str:
    """The name of this machine's own target."""
    done = subprocess.run([toolchain.rustc, "-vV"], capture_output=True, text=True, check=True)
    return next(line.removeprefix("host: ") for line in done.stdout.splitlines() if line.startswith("host: "))


def _libraries(toolchain: Debian) -> Path:
    """The folder with rustc's own libraries for this machine."""
    done = subprocess.run([toolchain.rustc, "--print", "target-libdir"], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()).parent
