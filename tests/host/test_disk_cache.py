"""Folders that shrink."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tartlet.disk_cache import mark_used, shrink


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of 10 bytes each, a.bin used longest ago, and things that are none of the cache's business."""
    for age, name in enumerate(("d.bin", "c.bin", "b.bin", "a.bin")):
        (tmp_path / name).write_bytes(b"0123456789")
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "lock").touch()
    (tmp_path / "folder.bin").mkdir()
    return tmp_path


def left(folder: Path) -> str:
    """Names of the files that are left, without their suffix."""
    return "".join(sorted(path.stem for path in folder.glob("?.bin")))


@pytest.mark.parametrize(("max_bytes", "names"), [(40, "abcd"), (39, "bcd"), (20, "cd"), (19, "d"), (0, "d")])
def test_what_was_used_longest_ago_goes(folder: Path, max_bytes: int, names: str) -> None:
    """Only as much as must go, and never the file used last, other files or folders."""
    shrink(folder, "*.bin", max_bytes)

    assert left(folder) == names
    assert (folder / "lock").exists()
    assert (folder / "folder.bin").exists()


def test_use_counts(folder: Path) -> None:
    """A file that is used again stays longer than one that was made later."""
    mark_used(folder / "a.bin")
    shrink(folder, "*.bin", 20)

    assert left(folder) == "ad"


def test_what_is_in_use_stays(folder: Path) -> None:
    """Files to keep stay above the limit too; the others still go."""
    shrink(folder, "*.bin", 10, keep=[folder / "a.bin", folder / "c.bin"])

    assert left(folder) == "acd"


def test_no_folder_is_nothing_to_do(tmp_path: Path) -> None:
    """Neither of the two fails for want of a folder."""
    mark_used(tmp_path / "missing" / "file")
    shrink(tmp_path / "missing", "*", 0)

    assert not (tmp_path / "missing").exists()
