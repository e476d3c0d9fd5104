"""What models there are, and what they take: the table behind `tartlet models list`."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tartlet import paths
from tartlet.models import hub, store
from tartlet.models.catalogue import CATALOGUE, TINY, unknown_model


class ModelState(StrEnum):
    """How far a model is from being loaded."""

    READY = "ready"
    FETCHED = "fetched"
    """Its file is here; the first use converts it."""
    NOT_FETCHED = "not fetched"
    NOT_MADE = "not made"
    """The random model: the first use makes it."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One row of the table."""

    name: str
    description: str
    state: ModelState
    size_bytes: int
    """On this disk; for one that is not here, what would have to be fetched."""
    licence: str
    source: str
    folder: str | None
    """Where it lies if it is ready."""


def list_models() -> list[ListedModel]:
    """List the catalogue, the random model, the converted GGUF files and what lies in the hub's cache."""
    return [*_catalogue_rows(), _tiny_row(), *_gguf_rows(), *_hub_rows()]


def remove(name: str) -> int:
    """Delete what is stored of a model and return the bytes freed; 0 if nothing was there.

    Raises:
        ModelError: `unknown_model` for a name that is none of ours. Folders of the user's are never touched.
    """
    folders = _owned_paths(name)
    if folders is None and hub.is_hub_id(name):
        return hub.remove(name)
    if folders is None:
        raise unknown_model(name)
    freed = 0
    for path in folders:
        if path.is_file():
            freed += path.stat().st_size
            path.unlink()
        elif path.is_dir():
            freed += store.folder_bytes(path)
            shutil.rmtree(path)
    return freed


def _owned_paths(name: str) -> list[Path] | None:
    if name in CATALOGUE:
        model = CATALOGUE[name]
        downloads = store.downloads_folder()
        return [store.packaged_folder(model), downloads / model.gguf_file, downloads / f"{model.name}.wheel"]
    if name == TINY:
        return [store.tiny_folder()]
    named = [folder for folder in _gguf_folders() if _gguf_name(folder) == name or folder.name == name]
    return named or None


def _catalogue_rows() -> list[ListedModel]:
    rows = []
    for model in CATALOGUE.values():
        folder = store.packaged_folder(model)
        gguf_path = store.downloads_folder() / model.gguf_file
        gguf_bytes = gguf_path.stat().st_size if gguf_path.exists() else 0
        state = ModelState.READY if store.is_ready(folder) else ModelState.FETCHED if gguf_bytes else None
        size = store.folder_bytes(folder) + gguf_bytes if state else model.wheel_bytes
        place = str(folder) if state is ModelState.READY else None
        state = state or ModelState.NOT_FETCHED
        rows.append(ListedModel(model.name, model.description, state, size, model.licence, model.source, place))
    return rows


def _tiny_row() -> ListedModel:
    folder = store.tiny_folder()
    ready = store.is_ready(folder)
    return ListedModel(
        TINY,
        "random weights: no download, and it babbles",
        ModelState.READY if ready else ModelState.NOT_MADE,
        store.folder_bytes(folder),
        "Apache-2.0",
        "made here",
        str(folder) if ready else None,
    )


def _gguf_folders() -> list[Path]:
    return sorted(folder for folder in paths.models_folder().glob("gguf-*") if store.is_ready(folder))


def _gguf_name(folder: Path) -> str:
    record = store.read_record(folder)
    return record.name if record else folder.name


def _gguf_rows() -> list[ListedModel]:
    rows = []
    for folder in _gguf_folders():
        record = store.read_record(folder)
        source = record.source if record else "unknown"
        size = store.folder_bytes(folder)
        rows.append(
            ListedModel(
                _gguf_name(folder), "converted GGUF file", ModelState.READY, size, "unknown", source, str(folder)
            )
        )
    return rows


def _hub_rows() -> list[ListedModel]:
    return [
        ListedModel(
            model.hub_id,
            "in the hub's cache",
            ModelState.READY,
            model.size_bytes,
            "see its page",
            "Hugging Face hub",
            str(model.folder),
        )
        for model in hub.cached_models()
    ]
