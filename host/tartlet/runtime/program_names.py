"""The programs that a host knows by name, which programs can ask for: controllers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from tartlet.errors import ProgramError
from tartlet.languages.language import ProgramSource
from tartlet.runtime.compiled_program import CompiledProgram
from tartlet.runtime.program import Program
from tartlet.versions import version_key

Loadable: TypeAlias = str | Path | bytes | ProgramSource | CompiledProgram
"""A path to a folder, a source file or a component; the bytes of a component; Python source as text (it has a newline);
source of several files; or what another process has compiled."""
Source: TypeAlias = Loadable | Program


class ProgramNames:
    """Finds programs by name, and loads each once. Thread: any, several at once; loading takes long.

    A program is known as `name` or as `name@version`. Asked for without a version, it is the one that has none, or the
    newest: versions are compared number by number.

    Args:
        sources: What to load, or what is loaded already, by name.
        load: Loads what a name stands for.
    """

    def __init__(self, sources: Mapping[str, Source], load: Callable[[Loadable, str], Program]) -> None:
        self._sources = dict(sources)
        self._load = load
        self._loaded: dict[str, Program] = {}
        self._lock = threading.Lock()

    def controller(self, name: str) -> Program:
        """The controller of that name.

        Raises:
            ProgramError: There is none (`not_found`), or it is no controller; or as `Host.load`.
        """
        key = self._key(name)
        if key is None:
            known = ", ".join(sorted(self._sources)) or "none"
            hint = f"It knows {known}. Tell it of programs with tartlet.Host(programs=...)."
            raise ProgramError(f"the host knows no program {name[:200]!r}", hint=hint, code="not_found")
        with self._lock:
            program = self._loaded.get(key)
            if program is None:
                source = self._sources[key]
                program = source if isinstance(source, Program) else self._load(source, key)
                self._loaded[key] = program
        if program.controller is None:
            raise ProgramError(f"the program {key!r} is an inferlet, not a controller")
        return program

    def _key(self, name: str) -> str | None:
        if name in self._sources:
            return name
        versions = [known for known in self._sources if known.partition("@")[0] == name]
        return max(versions, key=version_key, default=None)
