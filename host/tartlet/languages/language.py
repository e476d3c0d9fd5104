"""What the host knows of a language that programs are written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tartlet.progress import Progress


@dataclass(frozen=True, slots=True)
class ProgramSource:
    """The source of a program that runs without being built."""

    language: str
    """The name of its `Language`."""
    main: str
    """The name of the module that is run, without a suffix."""
    files: Mapping[str, str]
    """Text by path in the program's folder, with `/`."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that builds components, and whether it is here."""

    name: str
    version: str | None
    """None: it is not installed."""
    hint: str
    """How to install it."""


class FromFiles(Protocol):
    """Makes source of files that come from elsewhere: the same as `SourceMode.read_source`, but no other file is read.

    Whoever wrote the files may mean harm: none of their code runs. Tools that are started call `before_start` in their
    own process first, which takes away what they need not have. Raises BuildError: the files are no program.
    """

    def __call__(
        self, main: str, files: Mapping[str, str], before_start: Callable[[], None] | None = None
    ) -> ProgramSource:
        """Make it.

        Args:
            main: The name of the module that is run, without a suffix.
            files: Text by path in the program's folder, with `/`.
            before_start: See above.
        """
        ...


class BuildComponent(Protocol):
    """Builds the program at `source`, a file or a folder of the language, into the component `output`.

    `output` appears only when it is complete. Raises BuildError: a tool is missing, and the hint says how to install
    it; or the program does not compile, and the message is what the compiler says.
    """

    def __call__(self, source: Path, output: Path, progress: Progress) -> None:
        """Build it."""
        ...


@dataclass(frozen=True, slots=True)
class SourceMode:
    """How programs of a language run from source: in a runner, one component for all of them."""

    read_source: Callable[[Path, Progress], ProgramSource]
    """Reads a file or a folder of the language. Raises BuildError: it is none, it is too large, or is no text."""
    from_files: FromFiles
    can_take_files: Callable[[], bool]
    """Whether `from_files` works here, without installing anything first."""
    runner_component: Callable[[Progress], Path]
    """The runner, built now if it is not there yet; safe to call from several processes at once. Raises BuildError."""
    is_runner_there: Callable[[], bool]
    """Whether `runner_component` need not build it. Raises BuildError if what it is made of is missing."""
    has_controller: Callable[[ProgramSource], bool]
    """Whether a program seems to be a controller, or to have one."""
    has_inferlet: Callable[[ProgramSource], bool]
    """Whether a program seems to be an inferlet, or to have one."""


@dataclass(frozen=True, slots=True)
class Language:
    """One language."""

    name: str
    """In `--json` and in `ProgramSource`."""
    title: str
    """For people."""
    suffixes: Sequence[str]
    """Of a file that is a program by itself, such as `.py`."""
    main_files: Sequence[str]
    """Of a folder that is a program: it has one of these."""
    build_component: BuildComponent
    tools: Callable[[], Sequence[Tool]]
    """What `build_component` needs."""
    source_mode: SourceMode | None = None
    """None: its programs are built before they run."""
