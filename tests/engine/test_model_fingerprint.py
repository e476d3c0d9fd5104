"""Fingerprints of models: the same for the same weights, another for anything that pages depend on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from tartlet_engine.model_fingerprint import model_fingerprint

SETTINGS: dict[str, Any] = {"runner": "FusedRunner", "dtype": "float32", "page_size": 16}


@pytest.fixture
def copy(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "copy"))


def test_a_copy_has_the_same(tiny_folder: Path, copy: Path) -> None:
    """Where a model lies and when it was written does not matter."""
    assert model_fingerprint(copy, **SETTINGS) == model_fingerprint(tiny_folder, **SETTINGS)


@pytest.mark.parametrize("change", [{"runner": "TransformersRunner"}, {"dtype": "int4"}, {"page_size": 8}])
def test_another_form_of_pages_has_another(tiny_folder: Path, change: dict[str, Any]) -> None:
    """Runner, format and page size are part of it."""
    assert model_fingerprint(tiny_folder, **SETTINGS | change) != model_fingerprint(tiny_folder, **SETTINGS)


def test_each_tensor_counts(copy: Path) -> None:
    """A model trained further, in one tensor only, has another."""
    (path,) = copy.glob("*.safetensors")
    tensors = load_file(path)
    seen = {model_fingerprint(copy, **SETTINGS)}
    for name in tensors:
        save_file(tensors | {name: tensors[name] * 1.001 + 0.001}, path)
        seen.add(model_fingerprint(copy, **SETTINGS))

    assert len(seen) == 1 + len(tensors)


def test_the_configuration_counts(copy: Path) -> None:
    """Other constants make other keys and values of the same weights."""
    before = model_fingerprint(copy, **SETTINGS)
    config = copy / "config.json"
    config.write_text(config.read_text().replace("{", '{"note": 1, ', 1))

    assert model_fingerprint(copy, **SETTINGS) != before


def test_what_is_no_model_is_an_error(copy: Path) -> None:
    """A file that is cut short is an error, and is not digested."""
    (path,) = copy.glob("*.safetensors")
    path.write_bytes(b"short")

    with pytest.raises(ValueError, match="too short"):
        model_fingerprint(copy, **SETTINGS)
