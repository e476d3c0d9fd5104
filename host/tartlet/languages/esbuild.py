"""Runs esbuild, which makes one file of a JavaScript or TypeScript program and all that it imports."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.languages.node import esbuild_command
from tartlet.languages.tool import run_tool
from tartlet.progress import Progress

EXPECTED_S = 0.1
SDK_PACKAGE = "tartlet-sdk"
MAX_BYTES = 4 * 10**6
"""Of a bundle."""
LOWERED = (
    "--platform=neutral",
    "--target=es2023",
    # The engine's own promises need somebody who runs its queue of jobs; a call of a component's export does not.
    # Written so, all of this uses the global `Promise`, which is the SDK's.
    "--supported:async-await=false",
    "--supported:async-generator=false",
    "--supported:for-await=false",
    "--supported:top-level-await=false",
    "--supported:dynamic-import=false",
    "--log-level=error",
    "--log-limit=20",
    "--color=false",
)
"""How programs are written out, whatever is made of them."""
_COMMON = ("--bundle", "--main-fields=module,main", *LOWERED)
_ADVICE = re.compile(r"^  \S.*(?:--\w|as external|try/catch).*\n*", re.MULTILINE)
"""What esbuild would do about a module that it does not find, which is no use here."""
_HINT = "Modules of Node, such as fs, are not there in the sandbox. Packages are: npm installs them beside the program."


@dataclass(frozen=True, slots=True)
class Bundle:
    """A program in one file."""

    code: str
    """A CommonJS module, which requires nothing but the SDK."""
    source_map: str
    """JSON. Files are named by their paths in the program's folder."""


def bundle_program(entry: Path, progress: Progress) -> Bundle:
    """Bundle a program with all that it imports, but for the SDK.

    Raises:
        BuildError: It cannot be parsed, or what it imports is not there; the message has the places.
    """
    with tempfile.TemporaryDirectory(prefix="tartlet-bundle-") as made:
        output = Path(made).resolve() / "program.js"
        options = ["--format=cjs", f"--external:{SDK_PACKAGE}", "--sourcemap=external", "--sources-content=false"]
        _run(entry.resolve(), output, options, entry.resolve().parent, progress)
        code, written = output.read_text(encoding="utf-8"), json.loads(Path(f"{output}.map").read_text("utf-8"))
        folder = entry.resolve().parent
        names = [Path(os.path.relpath(output.parent / name, folder)).as_posix() for name in written["sources"]]
    if len(code) > MAX_BYTES:
        raise BuildError(f"{entry} has more than {MAX_BYTES:,} bytes with all that it imports")
    return Bundle(code, json.dumps({"sources": names, "mappings": written["mappings"]}))


def bundle_component(entry: Path, output: Path, aliases: Mapping[str, Path], progress: Progress) -> None:
    """Bundle the SDK's own code, of which a component is made: an ES module that imports the host's interfaces.

    Args:
        entry: The module with the component's exports.
        output: Where it is written.
        aliases: Files by the names of modules that they stand for.
        progress: Hears of it.
    """
    options = ["--format=esm", "--minify-whitespace", "--minify-syntax", "--external:tartlet:*"]
    options += [f"--alias:{name}={path}" for name, path in aliases.items()]
    _run(entry, output, options, entry.parent, progress)


def _run(entry: Path, output: Path, options: Sequence[str], folder: Path, progress: Progress) -> None:
    command = [*esbuild_command(progress), str(entry), *_COMMON, *options, f"--outfile={output}"]
    ended = run_tool(command, folder=folder, task="", expected_s=EXPECTED_S, progress=_unheard)
    if ended.status != 0:
        hint = _HINT if "Could not resolve" in ended.log else ""
        raise BuildError(_ADVICE.sub("", ended.tail).strip(), hint=hint)


def _unheard(task: str, done: float, total: float | None) -> None:
    """It takes some milliseconds, which is nothing to tell of."""
