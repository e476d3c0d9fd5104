"""All languages, and which one a path is a program of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.languages.c import C
from tartlet.languages.javascript import JAVASCRIPT
from tartlet.languages.language import Language, SourceMode
from tartlet.languages.python import PYTHON
from tartlet.languages.rust import RUST

LANGUAGES: Sequence[Language] = (PYTHON, JAVASCRIPT, C, RUST)


def language_named(name: str) -> Language:
    """The language of that name. Raises BuildError if there is none."""
    for language in LANGUAGES:
        if language.name == name:
            return language
    known = ", ".join(language.name for language in LANGUAGES)
    raise BuildError(f"{name[:100]!r} is no language of programs", hint=f"There are {known}.")


def source_mode(name: str) -> SourceMode:
    """How programs of the language of that name run from source. Raises BuildError if they do not."""
    language = language_named(name)
    if language.source_mode is None:
        raise BuildError(f"a program in {language.title} does not run from source", hint="Build it: tartlet build")
    return language.source_mode


def language_of(path: Path) -> Language:
    """The language of the program at `path`, a file or a folder.

    Raises:
        BuildError: It is of none, or a folder could be of several.
    """
    found = _languages_of_folder(path) if path.is_dir() else _languages_of_suffix(path)
    if len(found) == 1:
        return found[0]
    if not found:
        raise BuildError(f"{path} is no program", hint=f"Give {what_is_a_program()}.")
    titles = " and ".join(language.title for language in found)
    raise BuildError(f"{path} could be a program in {titles}", hint="Keep one main file in a folder.")


def is_source(path: Path) -> bool:
    """Whether a path that exists is source, by its name, and not a component."""
    return path.is_dir() or bool(_languages_of_suffix(path))


def what_is_a_program() -> str:
    """What can be given as a program's source, in words."""
    files = ", ".join(suffix for language in LANGUAGES for suffix in language.suffixes)
    mains = ", ".join(main for language in LANGUAGES for main in language.main_files)
    return f"a file ({files}), or a folder with one of {mains}"


def _languages_of_suffix(path: Path) -> list[Language]:
    return [language for language in LANGUAGES if path.suffix in language.suffixes]


def _languages_of_folder(path: Path) -> list[Language]:
    return [
        language for language in LANGUAGES if any((path / main_file).is_file() for main_file in language.main_files)
    ]
