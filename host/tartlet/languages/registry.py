"""All languages, and which one a path is a program of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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


def taken_modes() -> list[SourceMode]:
    """Those languages' whose source a server can take in, as it is installed now."""
    return [
        each.source_mode for each in LANGUAGES if each.source_mode is not None and each.source_mode.can_take_files()
    ]


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


def language_of_files(main: str, names: Collection[str]) -> Language:
    """The language of a program that comes as files, by the suffix of its main module.

    Args:
        main: The module's name, without a suffix.
        names: Paths in the program's folder.

    Raises:
        BuildError: No file is the main module, or files of several languages are.
    """
    found = [each for each in LANGUAGES if any(f"{main}{suffix}" in names for suffix in each.suffixes)]
    if len(found) == 1:
        return found[0]
    if found:
        titles = " and ".join(language.title for language in found)
        raise BuildError(f"{main!r} could be a module in {titles}", hint="Keep one main file.")
    suffixes = ", ".join(f"{main}{suffix}" for language in LANGUAGES for suffix in language.suffixes)
    raise BuildError("the program has no file of the name of its main module", hint=f"Give one of {suffixes}.")


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
