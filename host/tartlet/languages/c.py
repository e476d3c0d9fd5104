"""C inferlets: components built with Zig's C compiler and `guest-sdk/c`.

The first build on a machine takes half a minute, while Zig compiles the C library for Wasm. It keeps that, and what it
has compiled of the SDK, in its own cache.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.languages.guest_sdk import sdk_folder
from tartlet.languages.language import Language, Tool
from tartlet.languages.tool import folder_for, run_tool, tool_version
from tartlet.languages.wasm_tools import make_component, wasm_tools
from tartlet.progress import Progress, silent

NAME = "c"
TOOL = "Zig"
INSTALL = "Install it with: pip install 'tartlet[c]'"
EXPECTED_S = 1.0
STACK_BYTES = 65_536
_NO_RUN = "A program begins with: tartlet_result run(tartlet_string input) { ... }"

_MAX_SOURCE_BYTES = 1 << 20
_IS_CONTROLLER = re.compile(r"^\s*#\s*define\s+TARTLET_CONTROLLER\b", re.MULTILINE)
_OF_WASI = re.compile(r"wasi_snapshot_preview1(?:::(\w+))?")
_FLAGS = (
    *("-target", "wasm32-wasi", "-mexec-model=reactor", "-std=gnu23", "-Os", "-g", "-Wall"),
    "-UNDEBUG",  # `assert` is meant: a run that goes on with what must not be is worth less than one that ends
    f"-Wl,-z,stack-size={STACK_BYTES}",
)


def build_component(source: Path, output: Path, progress: Progress = silent) -> None:
    """Build a .c file, or a folder with a main.c and whatever .c and .h files lie in it, into the component `output`.

    It is a controller if a file defines `TARTLET_CONTROLLER`, otherwise an inferlet.

    Raises:
        BuildError: A tool is missing, or the program does not compile; the message is what the compiler says.
    """
    compiler = _find()
    if compiler is None:
        raise BuildError(f"{TOOL} is not installed", hint=INSTALL)
    root, files = _source_files(source.absolute())
    is_controller = any(_IS_CONTROLLER.search(_text(root / file)) for file in files)
    task = f"Building {output.name}"
    sdk = sdk_folder(NAME)
    with folder_for(output.absolute()) as folder:
        core = folder / files[0].stem  # the file's name is the module's, which traps show
        command = [compiler, "cc", *_FLAGS, *(["-DTARTLET_CONTROLLER="] if is_controller else [])]
        command += [f"-I{sdk / 'include'}", f"-ffile-prefix-map={sdk}=tartlet", "-o", str(core)]
        # The SDK first: what it has instead of the C library's own counts then.
        command += [str(file) for file in [*sorted((sdk / "src").glob("*.c")), *files]]
        ended = run_tool(command, folder=root, task=task, expected_s=EXPECTED_S, progress=progress)
        if ended.status != 0:
            hint = _NO_RUN if "undefined symbol: run\n" in f"{ended.tail}\n" else ""
            raise BuildError(f"the program cannot be compiled:\n{ended.tail}", hint=hint)
        try:
            make_component(core, output.absolute(), "controller" if is_controller else "inferlet", task, progress)
        except BuildError as error:
            raise _explained(error) from error
    progress(task, EXPECTED_S, EXPECTED_S)


def _source_files(source: Path) -> tuple[Path, list[Path]]:
    """The folder to compile in, and the files relative to it, the main one first."""
    if source.is_file() and source.suffix == ".c":
        return source.parent, [Path(source.name)]
    if not (source / "main.c").is_file():
        raise BuildError(f"{source} is neither a .c file nor a folder with a main.c", hint="Give the one or the other.")
    others = sorted(file.relative_to(source) for file in source.rglob("*.c") if file.is_file())
    main = Path("main.c")
    return source, [main, *(file for file in others if file != main)]


def _text(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(_MAX_SOURCE_BYTES).decode(errors="replace")


def _explained(error: BuildError) -> BuildError:
    """The same with what to do, where the program needs something that there is not."""
    found = _OF_WASI.search(error.message)
    if found is None:
        return error
    called = f" ({found[1]})" if found[1] else ""
    return BuildError(
        f"the program calls the C library for something of the system that programs do not have{called}",
        hint="There are no files, processes, clocks or exit. End a run by returning, or with tartlet_fail.",
    )


def _tools() -> list[Tool]:
    compiler = _find()
    version = None if compiler is None else tool_version([compiler, "version"])
    return [Tool(TOOL, version, INSTALL), wasm_tools()]


def _find() -> str | None:
    """The compiler: that of the Python package, or else the one on the PATH."""
    package = importlib.util.find_spec("ziglang")
    if package is not None and package.origin is not None:
        return str(Path(package.origin).parent / "zig")
    return shutil.which("zig")


C = Language(
    name=NAME,
    title="C",
    suffixes=(".c",),
    main_files=("main.c",),
    build_component=build_component,
    tools=_tools,
)
