from __future__ import annotations

from pathlib import Path

import pytest

from tartlet import models
from tartlet.errors import ModelError
from tartlet.models import store


@pytest.fixture(autouse=True)
def tartlet_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a home and a hub cache of its own."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "home"


def write_converted(folder: Path, name: str, source: str) -> Path:
    """Lay a converted model into the store, as a conversion would."""

    def make(unfinished: Path) -> None:
        unfinished.mkdir()
        (unfinished / "model.safetensors").write_bytes(bytes(1000))

    return store._make_once(folder, store.Record(name, source, "unknown"), make, lambda *_: None)


@pytest.mark.parametrize("name", ["smollm2-135m-instruct", "tiny"])
def test_what_is_not_there_is_listed_as_such(name: str) -> None:
    """The list says what there is before anything is fetched, with licence and source."""
    row = next(row for row in models.list_models() if row.name == name)

    assert row.state in (models.ModelState.NOT_FETCHED, models.ModelState.NOT_MADE)
    assert row.folder is None
    assert row.licence == "Apache-2.0"
    assert row.source


def test_models_of_others_cannot_be_removed(tmp_path: Path) -> None:
    """A folder of the user's is no name of the list."""
    folder = tmp_path / "mine"
    folder.mkdir()

    with pytest.raises(ModelError, match="no model"):
        models.remove(str(folder))

    assert folder.exists()


def test_a_converted_gguf_file_is_listed_by_its_name_and_can_be_removed(tartlet_home: Path, tmp_path: Path) -> None:
    """With the file that it came from, which stays."""
    gguf_path = tmp_path / "mine.gguf"
    gguf_path.touch()
    folder = write_converted(tartlet_home / "models" / "gguf-0123456789abcdef", "mine", str(gguf_path))

    row = next(row for row in models.list_models() if row.name == "mine")
    assert (row.state, row.source, row.folder) == (models.ModelState.READY, str(gguf_path), str(folder))
    assert models.remove("mine") == row.size_bytes > 1000
    assert not folder.exists()
    assert gguf_path.exists()


def test_a_file_that_is_fetched_and_not_converted_is_listed_as_such(tartlet_home: Path) -> None:
    """And its bytes can be had back."""
    (store.downloads_folder() / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(bytes(500))

    row = next(row for row in models.list_models() if row.name == models.DEFAULT)

    assert (row.state, row.size_bytes) == (models.ModelState.FETCHED, 500)
    assert models.remove(models.DEFAULT) == 500
