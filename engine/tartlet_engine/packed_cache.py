"""Packed models on disk: the second load of a model imports no transformers and packs nothing.

A file's name is a digest of everything that it depends on, so that what has changed is simply not found. Files are
written aside and renamed; two processes may both write one, and either is good.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from tartlet_engine.cache_folder import cache_folder, mark_used, shrink
from tartlet_engine.llama_weights import weights_bytes
from tartlet_engine.packed_file import UnusableFileError, read_packed, write_packed
from tartlet_engine.packed_model import PackedModel, pack_model
from tartlet_engine.packing import LAYOUT_VERSION, WeightFormat
from tartlet_engine.weights import require_safetensors

MAX_BYTES = 4 << 30

# The configuration's defaults and the rotary tables are transformers', computed by torch.
_COMPUTED_BY = ("transformers", "torch")

_log = logging.getLogger("tartlet_engine")


def find_packed(folder: Path, weight_format: WeightFormat) -> PackedModel | None:
    """Return a model folder's packed model from the cache, or None if there is none that can be used.

    Raises ModelLoadError if the folder holds no model. Cost: see `packed_file.read_packed`.
    """
    key = model_key(folder, weight_format)
    try:
        path = _path(key)
        with path.open("rb", buffering=0) as file:
            model = read_packed(file, key)
    except FileNotFoundError:
        return None
    except (OSError, UnusableFileError) as error:
        _log.warning("the packed model %s... cannot be used, and is made again: %s", key[:12], error)
        return None
    mark_used(path)
    return model


def make_packed(
    folder: Path, config: Any, weight_format: WeightFormat, progress: Callable[[float], None] | None = None
) -> PackedModel:
    """Pack a model folder's weights: `packed_model.pack_model`. The result is kept in the cache.

    Raises NotImplementedError if the fused runner does not serve the model. If it cannot be kept, that is no error, but
    a line in the log.
    """
    key = model_key(folder, weight_format)
    model = pack_model(folder, config, weight_format, progress)
    if model_key(folder, weight_format) == key:  # nobody changed the folder meanwhile
        _keep(key, model)
    return model


def model_key(folder: Path, weight_format: WeightFormat) -> str:
    """Digest what a packed model depends on. The layout is the same for all instruction sets.

    Weights are not read for it: a file's place, size and times stand for its content. The time of its last change of
    any kind is one of them, since copying tools set the time of modification back.

    Raises ModelLoadError if the folder holds no model.
    """
    require_safetensors(folder)
    versions = [f"{name} {metadata.version(name)}" for name in _COMPUTED_BY]
    digest = hashlib.sha256("\0".join([*versions, str(LAYOUT_VERSION), weight_format.name]).encode())
    digest.update((folder / "config.json").read_bytes())
    for path in sorted(folder.glob("*.safetensors*")):
        status = path.stat()
        facts = (path.name, path.resolve(), status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        digest.update("\0".join(map(str, facts)).encode() + b"\0\0")
    return digest.hexdigest()


def _keep(key: str, model: PackedModel) -> None:
    """Write a model into the cache, unless its disk is nearly full."""
    try:
        path = _path(key)
        if shutil.disk_usage(path.parent).free < 2 * weights_bytes(model.shape, model.weight_format):
            raise OSError("its disk is nearly full")
        descriptor, name = tempfile.mkstemp(prefix=".unfinished.", dir=path.parent)  # only its owner may read it
        try:
            with os.fdopen(descriptor, "wb") as file:
                write_packed(file, model, key)
            os.replace(name, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)
        shrink(path.parent, MAX_BYTES)
    except OSError as error:
        _log.warning("the packed model is not kept, so that the next load takes as long: %s", error)


def _path(key: str) -> Path:
    return cache_folder("packed") / f"{key}.packed"
