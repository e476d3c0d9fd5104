"""JavaScript and TypeScript programs: the runner that runs them from source, and components built of one program.

Source is bundled into one file here, by esbuild; the runner evaluates that. Both are made of `guest-sdk/js` and `wit/`.
The runner is built once and kept under `paths.runners_folder()`, named by the SHA-256 of all that it is made of; those
used longest ago go when they take more than `MAX_BYTES`. A release wheel carries it ready-made.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.languages.componentize import WIT
from tartlet.languages.esbuild import Bundle, bundle_component, bundle_program
from tartlet.languages.guest_sdk import PACKAGE, sdk_folder
from tartlet.languages.javascript_files import SUFFIXES, bundle_files
from tartlet.languages.kept_runner import kept_runner, runner_path
from tartlet.languages.language import Language, ProgramSource, SourceMode
from tartlet.languages.node import SDK, installed_esbuild, node_command, node_tool, packages
from tartlet.languages.tool import folder_for, run_tool
from tartlet.progress import Progress, silent
from tartlet.wit_parser import parse

NAME = "javascript"
PREBUILT_RUNNER = PACKAGE / "_runner" / f"{NAME}.wasm"  # in a release wheel
MAX_BYTES = 20 * 10**6
"""The runners of some five versions."""
MAIN_FILES = ("main.ts", "main.js")
EXPECTED_BUILD_S = 4.0
CODE, SOURCE_MAP = "program.js", "program.js.map"  # in `ProgramSource.files`
_CONTROLLER = re.compile(r"\bextends\s+(?:[\w$]+\.)*Controller\b")
_INFERLET = re.compile(r"\binferlet\)?\(")


def read_source(path: Path, progress: Progress = silent) -> ProgramSource:
    """Bundle a file, or a folder with a main.ts or main.js, with all that it imports.

    Raises:
        BuildError: It is neither, it cannot be parsed, or what it imports is not there.
    """
    entry = _entry(path)
    bundle = bundle_program(entry, progress)
    return ProgramSource(NAME, entry.stem, {CODE: bundle.code, SOURCE_MAP: bundle.source_map})


def source_from_files(
    main: str, files: Mapping[str, str], before_start: Callable[[], None] | None = None
) -> ProgramSource:
    """Bundle a program that comes as files from elsewhere; see `javascript_files`.

    Raises:
        BuildError: No file is called `main`, one cannot be parsed, or imports what is none of them.
    """
    entry = next((name for name in (main + suffix for suffix in SUFFIXES) if name in files), None)
    if entry is None:
        raise BuildError(f"the program has no file {main}.ts or {main}.js")
    bundle = bundle_files(entry, files, before_start)
    return ProgramSource(NAME, main, {CODE: bundle.code, SOURCE_MAP: bundle.source_map})


def has_controller(source: ProgramSource) -> bool:
    """Whether it seems to define a controller: a class that extends one called `Controller`."""
    return bool(_CONTROLLER.search(source.files.get(CODE, "")))


def has_inferlet(source: ProgramSource) -> bool:
    """Whether it seems to be an inferlet: it calls `inferlet`, or has no controller."""
    return not has_controller(source) or bool(_INFERLET.search(source.files.get(CODE, "")))


def runner_component(progress: Progress = silent) -> Path:
    """The runner for JavaScript source, built now if it is not there yet (some 4 s).

    Safe to call from several processes at once: one builds, the others wait for it.

    Raises:
        BuildError: It can neither be found nor built; the message says what is missing.
    """
    if PREBUILT_RUNNER.is_file():
        return PREBUILT_RUNNER

    def build(component: Path) -> None:
        _build("runner", "app.ts", None, component, "Building the JavaScript runner", progress)

    return kept_runner(runner_path(NAME, runner_digest()), "JavaScript", build, MAX_BYTES, progress)


def is_runner_there() -> bool:
    """Whether `runner_component` need not build it. Raises BuildError if the sources that it is made of are missing."""
    return PREBUILT_RUNNER.is_file() or runner_path(NAME, runner_digest()).is_file()


def build_component(source: Path, output: Path, progress: Progress = silent) -> None:
    """Build the program in `source` (see `read_source`) into the component `output` (some 4 s).

    It behaves as the same program does when it is run from source.

    Raises:
        BuildError: The source cannot be bundled, or a tool is missing; the message says which.
    """
    program = read_source(source, progress)
    bundle = Bundle(program.files[CODE], program.files[SOURCE_MAP])
    world, app = ("inferlet", "built_app.ts") if has_inferlet(program) else ("controller", "built_controller.ts")
    _build(world, app, bundle, output.absolute(), f"Building {output.name}", progress)


def runner_digest() -> str:
    """SHA-256, in hex, of what the runner is made of: SDK, runner, contract, and what builds it."""
    sources = sdk_folder(SDK)
    files = [file for folder in ("src", "runner") for file in (sources / folder).rglob("*.ts")]
    digest = hashlib.sha256()
    others = [sources / "package-lock.json", Path(__file__).with_name("unwrapping.py")]
    for file in sorted([*files, *WIT.glob("*.wit"), *others]):
        digest.update(f"{file.parent.name}/{file.name}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _entry(path: Path) -> Path:
    """The file that a program begins with."""
    if path.is_file() and path.suffix in SUFFIXES:
        return path
    for name in MAIN_FILES:
        if (path / name).is_file():
            return path / name
    raise BuildError(
        f"{path} is neither a {' or '.join(SUFFIXES[:2])} file nor a folder with a {' or '.join(MAIN_FILES)}",
        hint="Give the one or the other.",
    )


def _build(world: str, app: str, program: Bundle | None, output: Path, task: str, progress: Progress) -> None:
    """Build a component of the runner's module `app`. `output` appears only when it is complete."""
    runner = sdk_folder(SDK) / "runner"
    modules = packages(progress)
    with folder_for(output) as folder:
        aliases = {name: runner / "no_interface.ts" for name in _interfaces_not_in(world)}
        if program is not None:
            aliases["tartlet-program"] = _module_of(program, folder / "program.js")
        bundled, wrapped, built = folder / "app.js", folder / "wrapped.wasm", folder / "component.wasm"
        bundle_component(runner / app, bundled, aliases, progress)
        command: list[str | Path] = [
            *node_command(),
            modules / "componentize-qjs" / "cli.mjs",
            "--wit",
            WIT.resolve(),
            "--world",
            world,
        ]
        command += ["--js", bundled, "--sync", "--output", wrapped]
        ended = run_tool(command, folder=folder, task=task, expected_s=EXPECTED_BUILD_S, progress=progress)
        if ended.status != 0 or not wrapped.is_file():
            raise BuildError(f"componentize-qjs failed with status {ended.status}:\n{ended.tail}")
        from tartlet.languages.unwrapping import unwrap  # it reads Wasm, of which a server's front knows nothing

        built.write_bytes(unwrap(wrapped.read_bytes()))
        os.replace(built, output)
    progress(task, EXPECTED_BUILD_S, EXPECTED_BUILD_S)


def _interfaces_not_in(world: str) -> list[str]:
    """What the SDK imports and a component of this world cannot, by full names."""
    package = parse((WIT / "worlds.wit").read_text(encoding="utf-8"))
    definition = package.worlds[world]
    offered = {*definition.imports, *(name for other in definition.includes for name in package.worlds[other].imports)}
    return [
        f"{package.name}/{name}@{package.version}" for name in package.worlds["inferlet"].imports if name not in offered
    ]


def _module_of(program: Bundle, path: Path) -> Path:
    """Write a bundle as the module that the runner imports."""
    content = {"code": program.code, "map": program.source_map}
    path.write_text(f"export default {json.dumps(content)};\n", encoding="utf-8")
    return path


JAVASCRIPT = Language(
    name=NAME,
    title="JavaScript",
    suffixes=SUFFIXES,
    main_files=MAIN_FILES,
    build_component=build_component,
    tools=lambda: [node_tool()],
    source_mode=SourceMode(
        read_source=read_source,
        from_files=source_from_files,
        can_take_files=lambda: installed_esbuild() is not None,
        runner_component=runner_component,
        is_runner_there=is_runner_there,
        has_controller=has_controller,
        has_inferlet=has_inferlet,
    ),
)
