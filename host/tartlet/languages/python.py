"""Python inferlets: the runner component that runs them from source, and components built of one program.

Both are made of `guest-sdk/python` and `wit/`. The runner is built once and kept under `paths.runners_folder()`, named
by the SHA-256 of all that it is made of; those used longest ago go when they take more than `MAX_BYTES`. A release
wheel carries it ready-made.
"""

from __future__ import annotations

import ast
import hashlib
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.languages import componentize
from tartlet.languages.guest_sdk import PACKAGE, sdk_folder
from tartlet.languages.kept_runner import kept_runner, runner_path
from tartlet.languages.language import Language, ProgramSource, SourceMode, Tool
from tartlet.languages.source_files import read_file, read_folder
from tartlet.progress import Progress, silent

PREBUILT_RUNNER = PACKAGE / "_runner" / "python.wasm"  # in a release wheel
MAX_BYTES = 150 * 10**6
"""The runners of some five versions."""
NAME = "python"
GUEST_PACKAGES = ("tartlet_runner", "tartlet_sdk")


def read_source(path: Path, progress: Progress = silent) -> ProgramSource:
    """Read a .py file, or a folder with a main.py and whatever modules and packages lie beside it.

    Raises:
        BuildError: It is neither, it is too large, or a file is not UTF-8 text.
    """
    if path.is_file() and path.suffix == ".py":
        return ProgramSource(NAME, path.stem, {path.name: read_file(path)})
    if not (path / "main.py").is_file():
        raise BuildError(f"{path} is neither a .py file nor a folder with a main.py", hint="Give the one or the other.")
    return ProgramSource(NAME, "main", read_folder(path, (".py",)))


def source_from_files(
    main: str, files: Mapping[str, str], before_start: Callable[[], None] | None = None
) -> ProgramSource:
    """Make source of files from elsewhere. They stay as they are."""
    return ProgramSource(NAME, main, files)


def has_controller(source: ProgramSource) -> bool:
    """Whether the main module defines a controller: a class whose base is called `Controller`."""
    return any(_is_controller(node) for node in _statements(source))


def has_inferlet(source: ProgramSource) -> bool:
    """Whether the main module seems to have a function that is marked with `@inferlet`, its own or imported."""
    statements = _statements(source)
    return not has_controller(source) or any(_is_inferlet(node) for node in statements)


def runner_component(progress: Progress = silent) -> Path:
    """The runner for Python source, built now if it is not there yet (some 10 s, 0.5 GB of memory).

    Safe to call from several processes at once: one builds, the others wait for it.

    Raises:
        BuildError: It can neither be found nor built; the message says what is missing.
    """
    if PREBUILT_RUNNER.is_file():
        return PREBUILT_RUNNER

    def build(component: Path) -> None:
        recipe = componentize.Recipe("runner", "tartlet_runner.app", [guest_sources()])
        componentize.build(recipe, component, "Building the Python runner", progress)

    return kept_runner(runner_path(NAME, runner_digest()), "Python", build, MAX_BYTES, progress)


def is_runner_there() -> bool:
    """Whether `runner_component` need not build it. Raises BuildError if the sources that it is made of are missing."""
    return PREBUILT_RUNNER.is_file() or runner_path(NAME, runner_digest()).is_file()


def build_component(source: Path, output: Path, progress: Progress = silent) -> None:
    """Build the program in `source` (see `read_source`) into the component `output` (some 10 s, 0.5 GB of memory).

    It behaves as the same program does when it is run from source.

    Raises:
        BuildError: The source cannot be read or compiled, or componentize-py is missing; the message says which.
    """
    program = read_source(source)
    with tempfile.TemporaryDirectory(prefix="tartlet-build-") as folder:
        content = {"main": program.main, "files": dict(program.files)}
        Path(folder, "tartlet_program.py").write_text(f"PROGRAM = {content!r}\n", encoding="utf-8")
        world, app = ("inferlet", "built_app") if has_inferlet(program) else ("controller", "built_controller")
        recipe = componentize.Recipe(world, f"tartlet_runner.{app}", [guest_sources(), Path(folder)])
        componentize.build(recipe, output.absolute(), f"Building {output.name}", progress)


def runner_digest() -> str:
    """SHA-256, in hex, of what the runner is made of: SDK, runner, contract, and what builds it."""
    digest = hashlib.sha256(f"{componentize.TOOL} {componentize.version()}\0".encode())
    sources = guest_sources()
    files = [file for package in GUEST_PACKAGES for file in (sources / package).rglob("*.py")]
    for file in sorted([*files, *componentize.WIT.glob("*.wit"), Path(__file__).with_name("immortal.py")]):
        digest.update(f"{file.parent.name}/{file.name}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def guest_sources() -> Path:
    """The folder with the Python guest SDK and the runner. Raises BuildError if it is not installed."""
    return sdk_folder(NAME)


def _tools() -> list[Tool]:
    return [Tool(componentize.TOOL, componentize.installed_version(), componentize.INSTALL)]


def _statements(source: ProgramSource) -> list[ast.stmt]:
    """The statements of the main module; none if it cannot be parsed, which the runner tells better."""
    text = source.files.get(f"{source.main}.py", "")
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _is_controller(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and any(_last_name(base) == "Controller" for base in node.bases)


def _is_inferlet(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list]
    return any(_last_name(mark) == "inferlet" for mark in marks)


def _last_name(node: ast.expr) -> str:
    """`name` of `name` and of `module.name`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


PYTHON = Language(
    name=NAME,
    title="Python",
    suffixes=(".py",),
    main_files=("main.py",),
    build_component=build_component,
    tools=_tools,
    source_mode=SourceMode(
        read_source=read_source,
        from_files=source_from_files,
        can_take_files=lambda: True,
        runner_component=runner_component,
        is_runner_there=is_runner_there,
        has_controller=has_controller,
        has_inferlet=has_inferlet,
    ),
)
