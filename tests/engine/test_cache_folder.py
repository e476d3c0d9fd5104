"""Cache folders: private, and kept small by what was used longest ago."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tartlet_engine.cache_folder import cache_folder, mark_used, shrink


def make_files(folder: Path, num_bytes: int, *names: str) -> None:
    """Write files, each used later than the one before."""
    for time, name in enumerate(names, start=1000):
        (folder / name).write_bytes(bytes(num_bytes))
        os.utime(folder / name, (time, time))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_folder_is_made_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under TARTLET_HOME."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    folder = cache_folder("things")

    assert folder == tmp_path / "home" / "things"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cache_folder("things") == folder


def test_without_a_setting_it_is_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As the system names it."""
    monkeypatch.delenv("TARTLET_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))

    assert cache_folder("things").is_relative_to(tmp_path)


def test_what_was_used_longest_ago_goes(tmp_path: Path) -> None:
    """Until the rest fits."""
    make_files(tmp_path, 10, "first", "second", "third")
    shrink(tmp_path, 20)

    assert names(tmp_path) == {"second", "third"}


def test_using_a_file_keeps_it(tmp_path: Path) -> None:
    """It then counts as the last one used."""
    make_files(tmp_path, 10, "first", "second", "third")
    mark_used(tmp_path / "first")
    shrink(tmp_path, 20)

    assert names(tmp_path) == {"first", "third"}


def test_the_last_one_stays_however_large(tmp_path: Path) -> None:
    """It has just been asked for."""
    make_files(tmp_path, 10, "first", "second")
    shrink(tmp_path, 5)

    assert names(tmp_path) == {"second"}


def test_marking_a_file_that_is_gone_is_no_error(tmp_path: Path) -> None:
    """Another process may have deleted it."""
    mark_used(tmp_path / "gone")

    assert names(tmp_path) == set()
