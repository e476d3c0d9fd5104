"""Tells whether saved keys and values belong to a model: its weights, and the form in which its runner keeps pages."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path

# To be raised when any runner comes to keep keys and values in another form.
PAGES_VERSION = 1

_SAMPLE_BYTES = 256
_LENGTH = struct.Struct("<Q")


def model_fingerprint(folder: Path, *, runner: str, dtype: str, page_size: int) -> str:
    """Digest what the contents of pages depend on. It stays the same when the folder is copied.

    Of every tensor a sample stands for all of it, so that large models need not be read; a copy with other weights,
    trained further for example, has another digest.

    Args:
        folder: a model folder with a configuration and safetensors.
        runner: which of the runners keeps the pages.
        dtype: the format of the weights.
        page_size: tokens of a page.

    Raises OSError, or ValueError for a file that is no safetensors. Cost: one small read for each tensor.
    """
    digest = hashlib.sha256(json.dumps([PAGES_VERSION, runner, dtype, page_size]).encode())
    digest.update((folder / "config.json").read_bytes())
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb", buffering=0) as file:
            digest.update(_samples(file.fileno()))
    return digest.hexdigest()


def _samples(descriptor: int) -> bytes:
    """Return a file's header, and the middle of each of its tensors."""
    prefix = os.pread(descriptor, _LENGTH.size, 0)
    if len(prefix) < _LENGTH.size:
        raise ValueError("a file of the model is too short for safetensors")
    (header_bytes,) = _LENGTH.unpack(prefix)
    header = os.pread(descriptor, min(header_bytes, os.fstat(descriptor).st_size), _LENGTH.size)
    tensors = {name: place for name, place in json.loads(header).items() if name != "__metadata__"}
    parts = [header]
    for name in sorted(tensors):
        start, end = tensors[name]["data_offsets"]
        middle = max(start, (start + end - _SAMPLE_BYTES) // 2)
        num_bytes = min(_SAMPLE_BYTES, end - middle)
        parts.append(os.pread(descriptor, num_bytes, _LENGTH.size + header_bytes + middle))
    return b"".join(parts)
