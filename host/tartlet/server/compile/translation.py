"""What a compile child does with source before it is confined: some languages are translated by a program of their own.

That program is confined instead. It runs no code of the source, and is given no other files.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tartlet.errors import BuildError, ProgramError
from tartlet.languages.language import ProgramSource
from tartlet.languages.registry import language_of_files, source_mode
from tartlet.server.compile.confinement import confine_tool
from tartlet.server.compile.messages import CompileJob
from tartlet.server.requests import SourceFile


@dataclass(frozen=True, slots=True)
class Translated:
    """Source as its runner takes it."""

    digest: str
    """SHA-256 of the file in which it is stored."""
    source: ProgramSource


def translate(job: CompileJob) -> Translated:
    """Read stored source, and translate it if its runner takes something else. Raises what is wrong with it."""
    try:
        data = Path(job.path).read_bytes()
        file = msgspec.json.decode(data, type=SourceFile)
    except OSError as error:
        raise ProgramError(f"the stored program cannot be read: {error.strerror}", code="not_found") from error
    except msgspec.DecodeError as error:
        raise ProgramError(f"the stored source cannot be read: {error}", code="not_found") from error
    language = language_of_files(file.main, file.files)
    mode = source_mode(language.name)
    if not (mode.can_take_files() and mode.is_runner_there()):
        raise BuildError(
            f"this server takes no source in {language.title}",
            hint="Build a component of it (`tartlet build`), and upload that.",
            code="unsupported_language",
        )
    child = os.getpid()
    source = mode.from_files(file.main, file.files, lambda: confine_tool(job, child))
    return Translated(hashlib.sha256(data).hexdigest(), source)
