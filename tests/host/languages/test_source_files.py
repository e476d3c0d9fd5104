"""Reading the files of a program's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tartlet.errors import BuildError
from tartlet.languages import source_files
from tartlet.languages.source_files import read_file, read_folder


def test_a_folder_brings_the_files_of_a_kind(tmp_path: Path) -> None:
    """Without what is hidden and without what tools have made; by path, sorted."""
    kept = ("b.py", "a/c.py")
    for name in (*kept, ".hidden.py", ".git/x.py", "node_modules/x.py", "__pycache__/x.py", "d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)

    assert list(read_folder(tmp_path, (".py",)).items()) == [(name, name) for name in sorted(kept)]


def test_a_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In files and in bytes; the error says how much may be there."""
    for number in range(3):
        (tmp_path / f"{number}.py").write_text("1234")
    monkeypatch.setattr(source_files, "MAX_FILES", 2)
    with pytest.raises(BuildError, match="more than 2 files or"):
        read_folder(tmp_path, (".py",))
    monkeypatch.setattr(source_files, "MAX_FILES", 3)
    monkeypatch.setattr(source_files, "MAX_BYTES", 11)
    with pytest.raises(BuildError, match="or 11 bytes of source"):
        read_folder(tmp_path, (".py",))
    monkeypatch.setattr(source_files, "MAX_BYTES", 12)
    assert len(read_folder(tmp_path, (".py",))) == 3


def test_a_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused by its size, before it is read."""
    (tmp_path / "long.py").write_text("12345")
    monkeypatch.setattr(source_files, "MAX_BYTES", 4)

    with pytest.raises(BuildError, match="more than 4 bytes"):
        read_file(tmp_path / "long.py")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A file that is no text, and one that is a folder."""
    (tmp_path / "latin.py").write_bytes(b"\xe9")

    with pytest.raises(BuildError, match=r"latin\.py is not UTF-8 text"):
        read_file(tmp_path / "latin.py")
    with pytest.raises(BuildError, match="cannot be read: Is a directory"):
        read_file(tmp_path)
