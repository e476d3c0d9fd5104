"""Builds Python inferlets: the runner component for source mode, and components of one program (built mode).

Both are made by componentize-py from `guest-sdk/python` and `wit/`. The runner is built once and kept under
`paths.runners_folder()`, named by the SHA-256 of all that it is made of; a release wheel carries it ready-made.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tartlet import paths
from tartlet.errors import BuildError

Progress = Callable[[float], None]
"""Called now and then during a build, with a rough fraction done: 0 <= fraction <= 1."""

PACKAGE = Path(__file__).parent
PREBUILT_RUNNER = PACKAGE / "_runner" / "python.wasm"  # in a release wheel
WIT = PACKAGE / "wit"
GUEST_PACKAGES = ("tartlet_runner", "tartlet_sdk")
EXPECTED_BUILD_S = 10.0
TOOL = "componentize-py"
RUN_TOOL = "import sys; from componentize_py import script; sys.exit(script())"  # it has no __main__


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """The source of a Python inferlet."""

    main: str
    """The name of the module that has the `@inferlet` function."""
    files: Mapping[str, str]
    """Text by path in the program's folder, with `/`."""

    @classmethod
    def read(cls, path: Path) -> PythonProgram:
        """Read a .py file, or a folder with a main.py and whatever modules and packages lie beside it.

        Raises:
            BuildError: It is neither, or a file is not UTF-8 text.
        """
        if path.is_file() and path.suffix == ".py":
            return cls(path.stem, {path.name: _text(path)})
        if not (path / "main.py").is_file():
            raise BuildError(
                f"{path} is neither a .py file nor a folder with a main.py", hint="Give the one or the other."
            )
        sources = (file for file in sorted(path.rglob("*.py")) if not _is_hidden(file.relative_to(path)))
        return cls("main", {file.relative_to(path).as_posix(): _text(file) for file in sources})


def runner_component(progress: Progress | None = None) -> Path:
    """The runner for Python source, built now if it is not there yet (some 10 s, 0.5 GB of memory).

    Safe to call from several processes at once: one builds, the others wait for it.

    Raises:
        BuildError: It can neither be found nor built; the message says what is missing.
    """
    if PREBUILT_RUNNER.is_file():
        return PREBUILT_RUNNER
    component = paths.runners_folder() / f"python-{runner_digest()}.wasm"
    if not component.is_file():
        with _locked(component.with_suffix(".lock")):
            if not component.is_file():
                _componentize("runner", "tartlet_runner.app", [guest_sources()], component, progress)
    return component


def build_component(source: Path, output: Path, progress: Progress | None = None) -> None:
    """Build the program in `source` (see `PythonProgram.read`) into the component `output` (some 10 s).

    It behaves as the same program does when it is run from source.

    Raises:
        BuildError: The source cannot be read or compiled, or componentize-py is missing; the message says which.
    """
    program = PythonProgram.read(source)
    with tempfile.TemporaryDirectory(prefix="tartlet-build-") as folder:
        content = {"main": program.main, "files": dict(program.files)}
        Path(folder, "tartlet_program.py").write_text(f"PROGRAM = {content!r}\n", encoding="utf-8")
        _componentize("inferlet", "tartlet_runner.built_app", [guest_sources(), Path(folder)], output, progress)


def runner_digest() -> str:
    """SHA-256, in hex, of what the runner is made of: SDK, runner, contract, and the version of componentize-py."""
    digest = hashlib.sha256(f"{TOOL} {_tool_version()}\0".encode())
    sources = guest_sources()
    files = [file for package in GUEST_PACKAGES for file in (sources / package).rglob("*.py")]
    for file in sorted([*files, *WIT.glob("*.wit")]):
        digest.update(f"{file.parent.name}/{file.name}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def guest_sources() -> Path:
    """The folder with the Python guest SDK and the runner: inside the package, or in the repository beside it.

    Raises:
        BuildError: It is in neither place.
    """
    for folder in (PACKAGE / "_guest_sdk" / "python", PACKAGE.parent.parent / "guest-sdk" / "python"):
        if all((folder / package).is_dir() for package in GUEST_PACKAGES):
            return folder
    raise BuildError(
        "the sources of the Python guest SDK are not installed",
        hint="Install a release of tartlet, or run from its repository.",
    )


def _componentize(world: str, app: str, python_path: list[Path], output: Path, progress: Progress | None) -> None:
    """Run componentize-py; `output` appears only when it is complete."""
    _tool_version()
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".tartlet-", dir=output.parent) as folder:
        built = Path(folder, "component.wasm")
        command = [sys.executable, "-c", RUN_TOOL, "--wit-path", str(WIT.resolve()), "--world", world]
        command += ["componentize", app, "--output", str(built)]
        for entry in python_path:
            command += ["--python-path", str(entry)]
        # Without VIRTUAL_ENV and PATH it does not look for installed packages, which must not get into the component.
        environment = {
            key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PATH", "PYTHONPATH")
        }
        log = Path(folder, "log")
        with log.open("wb") as sink:
            process = subprocess.Popen(
                command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )
            try:
                _wait(process, progress)
            except BaseException:
                process.kill()
                process.wait()
                raise
        if process.returncode != 0 or not built.is_file():
            raise BuildError(_reason(log.read_text(encoding="utf-8", errors="replace"), process.returncode))
        os.replace(built, output)
    if progress is not None:
        progress(1.0)


def _wait(process: subprocess.Popen[bytes], progress: Progress | None) -> None:
    """Wait for the end of the build and tell how far it may be."""
    begun = time.monotonic()
    while True:
        try:
            process.wait(timeout=None if progress is None else 0.2)
            return
        except subprocess.TimeoutExpired:
            if progress is not None:
                progress(min(0.95, (time.monotonic() - begun) / EXPECTED_BUILD_S))


def _reason(log: str, status: int) -> str:
    """What to tell of a failed build: the program's own error if the build printed one, else the end of the log."""
    _, marker, rest = log.partition("tartlet-build-error:\n")
    if marker:
        return rest.partition("\ntartlet-build-error-end")[0]
    return f"{TOOL} failed with status {status}:\n" + log[-4000:].strip()


def _tool_version() -> str:
    """The version of componentize-py. Raises `BuildError` if it is not installed."""
    if importlib.util.find_spec("componentize_py") is None:
        raise BuildError(f"{TOOL} is not installed", hint="Install it with: pip install 'tartlet[build]'")
    return importlib.metadata.version(TOOL)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` against other processes and threads."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BuildError(f"{path} is not UTF-8 text: {error}") from None
