from __future__ import annotations

import json
from pathlib import Path

import pytest

from tartlet import models
from tartlet.errors import ModelError


@pytest.fixture(autouse=True)
def tartlet_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a home and a hub cache of its own."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "home"


def write_model_folder(folder: Path, *, architecture: str = "LlamaForCausalLM") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_the_tiny_model_is_made_once_and_can_be_removed() -> None:
    """It needs no download, is listed, and its bytes are given back."""
    folder = models.local_path("tiny")
    made_ns = (folder / "model.safetensors").stat().st_mtime_ns

    assert models.local_path("tiny") == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == made_ns
    row = next(row for row in models.list_models() if row.name == "tiny")
    assert (row.state, row.folder) == (models.ModelState.READY, str(folder))

    assert models.remove("tiny") == row.size_bytes
    assert not folder.exists()
    assert models.remove("tiny") == 0


def test_an_unknown_name_is_answered_with_names_that_come_close() -> None:
    """The error says what a model can be."""
    with pytest.raises(ModelError, match="no model 'smollm2'") as caught:
        models.pull("smollm2")

    assert caught.value.code == "unknown_model"
    assert "smollm2-135m-instruct" in caught.value.hint.split("A model is")[0]


def test_a_folder_is_used_where_it_lies(tmp_path: Path) -> None:
    """Nothing of the user's is copied."""
    folder = write_model_folder(tmp_path / "mine")

    assert models.pull(str(folder)) == folder


@pytest.mark.parametrize(("missing", "code"), [("config.json", "not_a_model"), ("model.safetensors", "no_safetensors")])
def test_a_folder_without_what_a_model_needs_is_refused(tmp_path: Path, missing: str, code: str) -> None:
    """Weights in pickle files do not count."""
    folder = write_model_folder(tmp_path / "mine")
    (folder / missing).unlink()
    (folder / "pytorch_model.bin").write_bytes(b"pickle")

    with pytest.raises(ModelError) as caught:
        models.pull(str(folder))

    assert caught.value.code == code


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/model", "~/no/such.gguf", "nowhere.gguf"])
def test_a_path_that_is_not_there_is_never_looked_up_on_the_hub(name: str) -> None:
    """What looks like a path is one."""
    with pytest.raises(ModelError, match="there is no") as caught:
        models.pull(name)

    assert caught.value.code == "unknown_model"
