"""The folder of saved contexts: places, files, what is unfinished, what is swept."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from tartlet_engine.saved_file import SavedHeader, Snapshot
from tartlet_engine.saved_folder import SavedFolder, place_of


def snapshot(name: str, expires_ms: int | None = None) -> Snapshot:
    header = SavedHeader("t", name, "tiny", "model 1", 3, 0, expires_ms, "state")
    return Snapshot(header, torch.zeros(3, dtype=torch.int32), torch.zeros(2, 10, dtype=torch.uint8), None)


def write(folder: SavedFolder, saved: Snapshot) -> None:
    with folder.writing(saved) as rename:
        rename()


def names(folder: SavedFolder) -> list[str | None]:
    return sorted(file.header.name if file.header else "?" for file in folder.files("t"))


def test_a_file_is_there_when_it_is_renamed(tmp_path: Path) -> None:
    """Until then nobody sees it; what is not renamed leaves nothing behind."""
    folder = SavedFolder(tmp_path / "saved")
    with folder.writing(snapshot("a")) as rename:
        assert names(folder) == []
        rename()
    with folder.writing(snapshot("b")):
        pass

    assert names(folder) == ["a"]
    assert [path.name for path in (tmp_path / "saved").rglob("*") if path.is_file()] == [place_of("t", "a").name]
    folder.remove(place_of("t", "a"))
    assert names(folder) == []


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """The caller hears of it."""
    (tmp_path / "saved").write_text("in the way")
    with pytest.raises(OSError, match="saved"), SavedFolder(tmp_path / "saved").writing(snapshot("a")):
        pass


def test_sweeping_spares_what_is_being_written(tmp_path: Path) -> None:
    """What has expired goes, and so does what nobody writes any more; all else stays."""
    folder = SavedFolder(tmp_path / "saved")
    write(folder, snapshot("old", expires_ms=1))
    write(folder, snapshot("new", expires_ms=5))
    abandoned = (tmp_path / "saved" / place_of("t", "a")).with_name(".unfinished.x")
    abandoned.write_bytes(b"half")
    with folder.writing(snapshot("a")) as rename:
        folder.sweep(lambda header: header.expires_ms == 1, nullcontext)
        rename()

    assert names(folder) == ["a", "new"]
    assert not abandoned.exists()


def test_names_and_tenants_have_places_of_their_own() -> None:
    """No two have the same, whatever they are called."""
    pairs = [("a", "b"), ("b", "a"), ("", "ab"), ("ab", ""), ("../x", "/etc"), ("a", "b/..")]

    assert len({place_of(*pair) for pair in pairs}) == len(pairs)
