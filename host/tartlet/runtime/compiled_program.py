"""Programs that another process has compiled: files that end with a digest, which is checked when they are loaded.

Of a component it is native code, as `wasm.compiler` keeps it. Of source it is a line of JSON that says what it is, and
its files as the runner takes them: with their code, which is run inside the sandbox only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tartlet.errors import ProgramError
from tartlet.wasm.sealed_file import SEAL_BYTES, is_whole, write_sealed


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program to load that has been compiled already."""

    path: Path
    digest: str
    """SHA-256, in hexadecimal, of what was compiled."""
    kind: Literal["component", "source"]
    is_controller: bool
    """Of a component. A file of source says it itself."""


@dataclass(frozen=True, slots=True)
class CompiledSource:
    """Source whose files have their code with them."""

    language: str
    """The name of its `Language`."""
    main: str
    """The module that is run."""
    is_controller: bool
    """Whether it is a controller, or has one."""
    files_json: str
    """The files, as the runner takes them."""


def write_source(path: Path, source: CompiledSource) -> None:
    """Write the file of a program of source: under its name it is whole. Raises OSError."""
    known = {"language": source.language, "main": source.main, "is_controller": source.is_controller}
    write_sealed(path, f"{json.dumps(known)}\n{source.files_json}".encode())


def read_source(path: Path) -> CompiledSource:
    """Read what `write_source` has written. Raises ProgramError, code `code_missing`, if it is gone or damaged."""
    try:
        with path.open("rb") as file:
            if not is_whole(file):
                raise code_missing()
            file.seek(0)
            content = file.read()[:-SEAL_BYTES]
    except OSError:
        raise code_missing() from None
    first_line, _, files_json = content.decode().partition("\n")
    known = json.loads(first_line)
    return CompiledSource(known["language"], known["main"], known["is_controller"], files_json)


def code_missing() -> ProgramError:
    """The error for a file that is gone, or is not what was written. It does not tell where: clients read it."""
    hint = "Start it again: it is compiled anew."
    return ProgramError("the program's compiled code is not there any more", hint=hint, code="code_missing")
