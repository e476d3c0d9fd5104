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

from tartlet_engine.cache_folder import cache_folder, mark_used, shrink
from tartlet_engine.llama_weights import weights_bytes
from tartlet_engine.packed_file import UnusableFileError, read_packed, write_packed
from tartlet_engine.packed_model import PackedModel, pack_model
from tartlet_engine.packing import LAYOUT_VERSION, WeightFormat
from tartlet_engine.weights import read_config, require_safetensors

MAX_BYTES = 4 << 30

# The configuration's defaults and the rotary tables are transformers', computed by torch.
_COMPUTED_BY = ("transformers", "torch")

_log = logging.getLogger("tartlet_engine")

Report = Callable[[str, float], None]


def load_packed(folder: Path, weight_format: WeightFormat, report: Report) -> PackedModel:
    """Return a model folder's packed model: from the cache, or else made, and put there.

    Raises ModelLoadError if the folder holds no model, and NotImplementedError if the fused runner does not serve it.
    A cache that cannot be read or written is no error, but a line in the log.
    """
    key = model_key(folder, weight_format)
    report("reading weights", 0.2)
    model = _find(key)
    if model is None:
        report("importing transformers", 0.2)
        config = read_config(folder)
        model = pack_model(folder, config, weight_format, lambda done: report("packing weights", 0.3 + 0.6 * done))
        if model_key(folder, weight_format) == key:  # nobody changed the folder meanwhile
            _keep(key, model)
    if weight_format in (WeightFormat.INT8, WeightFormat.INT4):
        name, error = weight_format.name.lower(), model.weights.rounding_error
        _log.info("weights=%s rounding_error=%.4f (root mean square, relative to the weights)", name, error)
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


def _find(key: str) -> PackedModel | None:
    """Return the cached model of this key, or None if there is none that can be used."""
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
