"""Which language a path is a program of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tartlet.errors import BuildError
from tartlet.languages import registry
from tartlet.languages.python import PYTHON
from tartlet.languages.registry import LANGUAGES, is_source, language_named, language_of, language_of_files, taken_modes


def test_files_and_folders_have_their_languages(tmp_path: Path) -> None:
    """By the suffix of a file, and by the main file of a folder."""
    for language in LANGUAGES:
        for suffix in language.suffixes:
            file = tmp_path / f"program{suffix}"
            file.touch()
            assert language_of(file) is language
            assert is_source(file)
        for main_file in language.main_files:
            folder = tmp_path / f"{language.name}-{main_file}"
            folder.mkdir()
            (folder / main_file).touch()
            assert language_of(folder) is language
            assert is_source(folder)


def test_what_is_no_program_is_told_what_is_one(tmp_path: Path) -> None:
    """A folder without a main file, a file of another kind, and a path where nothing is."""
    (tmp_path / "text.txt").touch()

    for path in (tmp_path, tmp_path / "text.txt", tmp_path / "missing"):
        with pytest.raises(BuildError, match="is no program") as caught:
            language_of(path)
        assert ".py" in caught.value.hint
        assert "main.py" in caught.value.hint
    assert not is_source(tmp_path / "text.txt")


def test_a_folder_of_two_languages_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names both."""
    other = replace(PYTHON, name="other", title="Other", suffixes=(".other",), main_files=("main.other",))
    monkeypatch.setattr(registry, "LANGUAGES", (PYTHON, other))
    (tmp_path / "main.py").touch()
    (tmp_path / "main.other").touch()

    with pytest.raises(BuildError, match="could be a program in Python and Other"):
        language_of(tmp_path)


def test_languages_are_found_by_name() -> None:
    """One that is not there is refused with those that are."""
    for language in LANGUAGES:
        assert language_named(language.name) is language
    with pytest.raises(BuildError, match="'cobol' is no language") as caught:
        language_named("cobol")
    assert "python" in caught.value.hint


def test_files_have_the_language_of_their_main_module() -> None:
    """Whatever else is among them."""
    for language in LANGUAGES:
        for suffix in language.suffixes:
            assert language_of_files("main", [f"main{suffix}", "other.xyz"]) is language
    with pytest.raises(BuildError, match="no file of the name of its main module") as caught:
        language_of_files("main", ["other.py"])
    assert "main.py" in caught.value.hint
    with pytest.raises(BuildError, match="'main' could be a module in Python and C"):
        language_of_files("main", ["main.py", "main.c"])


def test_a_server_takes_source_that_it_has_the_tools_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the languages that run from source."""
    mode = PYTHON.source_mode
    assert mode is not None
    other = replace(PYTHON, name="other", source_mode=replace(mode, can_take_files=lambda: False))
    monkeypatch.setattr(registry, "LANGUAGES", (PYTHON, other, replace(PYTHON, source_mode=None)))

    assert taken_modes() == [mode]
