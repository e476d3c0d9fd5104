from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tartlet import paths
from tartlet.errors import ConfigError


def test_everything_lies_under_the_home_that_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TARTLET_HOME decides, and may begin with ~."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TARTLET_HOME", "~/here")

    assert paths.home() == tmp_path / "here"
    assert not paths.home().exists()
    for folder in (
        paths.models_folder(),
        paths.components_folder(),
        paths.runners_folder(),
        paths.packed_folder(),
        paths.saved_folder(),
    ):
        assert folder.is_dir()
        assert folder.is_relative_to(tmp_path / "here")


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that run in another folder find the same place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARTLET_HOME", "here")

    assert paths.home() == tmp_path / "here"


def test_the_default_home_is_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is stored where programs are."""
    monkeypatch.delenv("TARTLET_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert paths.home() == tmp_path / "tartlet"


def test_folders_are_their_owners_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled components are native code: nobody else may write there."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))

    assert stat.S_IMODE(paths.components_folder().stat().st_mode) == 0o700


def test_a_home_that_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the folder and the variable."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "file"))

    with pytest.raises(ConfigError, match=r"cannot make the folder .*/file/models: Not a directory") as caught:
        paths.models_folder()
    assert "TARTLET_HOME" in caught.value.hint
