"""One saved context as a file: safetensors, whose metadata says what it is, and whose digest covers all of it.

A file that is cut short, altered or not a saved context is recognised and refused as a whole. The digest is no defence
against somebody who may write into the folder. Reading maps no memory: a file that shrinks meanwhile is only too short.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import msgspec
import torch

from tartlet_engine.gaps import Gaps

_LENGTH = struct.Struct("<Q")
_NO_DIGEST = "0" * 64
_MAX_HEADER_BYTES = 16 << 20
_HEADER_ALIGNMENT = 8
_DTYPES = {"U8": torch.uint8, "I32": torch.int32, "F32": torch.float32}
_MAX_READ_BYTES = 1 << 30  # Linux reads at most 2 GiB in a call


class UnusableFileError(ValueError):
    """Not a saved context, or not a whole and unaltered one."""


class SavedHeader(msgspec.Struct, frozen=True):
    """What a saved context is: whose, of which model, and how long it is kept."""

    tenant: str
    name: str
    model: str  # the name that the model was served by
    fingerprint: str  # of the model, and of the form in which its runner keeps pages
    num_tokens: int
    created_ms: int  # since the epoch
    expires_ms: int | None
    host_state: str  # the program side's own, handed back as it was
    gaps: Gaps = ()  # in its positions
    adapter: str | None = None  # the LoRA adapter that its tokens were computed with
    adapter_digest: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A saved context in memory."""

    header: SavedHeader
    token_ids: torch.Tensor  # int32[tokens]
    pages: torch.Tensor  # uint8[pages, page_bytes], as `ModelRunner.read_pages` gives them
    logits: torch.Tensor | None  # float32[V], after the last token

    @property
    def num_bytes(self) -> int:
        """What it takes, in memory or, but for some hundred bytes, on a disk."""
        return sum(tensor.nbytes for tensor in self.tensors.values()) + len(msgspec.json.encode(self.header))

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Its tensors by name, in the order in which a file has them."""
        named = {"logits": self.logits, "token_ids": self.token_ids, "pages": self.pages}
        return {name: tensor.contiguous() for name, tensor in named.items() if tensor is not None}


class _Place(msgspec.Struct, frozen=True):
    """Where a tensor lies, as safetensors has it."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


class _Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tartlet_saved_context: str  # the header, as JSON
    sha256: str  # of the whole file, with zeros in this place


class _FileHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    metadata: _Metadata = msgspec.field(name="__metadata__")
    token_ids: _Place
    pages: _Place
    logits: _Place | None = None

    def places(self) -> Iterator[tuple[str, _Place]]:
        """The tensors that the file has."""
        for name in ("logits", "token_ids", "pages"):
            place = getattr(self, name)
            if place is not None:
                yield name, place


def write_saved(file: IO[bytes], snapshot: Snapshot) -> None:
    """Write a saved context into an empty file. Raises OSError."""
    places: dict[str, _Place] = {}
    position = 0
    names = {dtype: name for name, dtype in _DTYPES.items()}
    tensors = snapshot.tensors
    for name, tensor in tensors.items():
        places[name] = _Place(names[tensor.dtype], list(tensor.shape), (position, position + tensor.nbytes))
        position += tensor.nbytes
    metadata = _Metadata(msgspec.json.encode(snapshot.header).decode(), _NO_DIGEST)
    header = msgspec.json.encode(_FileHeader(metadata, **places))
    header += b" " * (-len(header) % _HEADER_ALIGNMENT)
    contents = [tensor.view(torch.uint8).numpy().data.cast("B") for tensor in tensors.values() if tensor.nbytes]
    digest = hashlib.sha256(_LENGTH.pack(len(header)) + header)
    for content in contents:
        digest.update(content)
    file.write(_LENGTH.pack(len(header)) + header.replace(_NO_DIGEST.encode(), digest.hexdigest().encode()))
    for content in contents:
        file.write(content)


def read_header(file: IO[bytes]) -> SavedHeader:
    """Read only what the file says that it is. Raises UnusableFileError and OSError."""
    _, header, _ = _read_file_header(file)
    return _saved_header(header)


def read_saved(file: IO[bytes]) -> Snapshot:
    """Read a saved context, all of it checked. Raises UnusableFileError and OSError.

    Cost: one copy and one SHA-256 of the file, most of it without the GIL.
    """
    raw_header, header, num_bytes = _read_file_header(file)
    saved_header = _saved_header(header)
    buffer = torch.empty(num_bytes, dtype=torch.uint8)
    content = buffer.numpy().data
    position = 0
    while position < num_bytes:
        num_read = os.preadv(
            file.fileno(), [content[position : position + _MAX_READ_BYTES]], _LENGTH.size + len(raw_header) + position
        )
        if num_read == 0:
            raise UnusableFileError("it is cut short")
        position += num_read
    digest = hashlib.sha256(_LENGTH.pack(len(raw_header)))
    digest.update(raw_header.replace(header.metadata.sha256.encode(), _NO_DIGEST.encode()))
    digest.update(content)
    if digest.hexdigest() != header.metadata.sha256:
        raise UnusableFileError("its contents are not those that were saved")
    tensors = {name: _view(buffer, place) for name, place in header.places()}
    return Snapshot(saved_header, tensors["token_ids"], tensors["pages"], tensors.get("logits"))


def _read_file_header(file: IO[bytes]) -> tuple[bytes, _FileHeader, int]:
    """Return the header as it stands and as it reads, and how many bytes of tensors follow."""
    size = os.fstat(file.fileno()).st_size
    prefix = os.pread(file.fileno(), _LENGTH.size, 0)
    if len(prefix) < _LENGTH.size:
        raise UnusableFileError("it is cut short")
    (header_bytes,) = _LENGTH.unpack(prefix)
    num_bytes = size - _LENGTH.size - header_bytes
    if header_bytes > _MAX_HEADER_BYTES or num_bytes < 0:
        raise UnusableFileError("it is cut short, or no saved context")
    raw_header = os.pread(file.fileno(), header_bytes, _LENGTH.size)
    try:
        header = msgspec.json.decode(raw_header, type=_FileHeader)
    except msgspec.DecodeError as error:
        raise UnusableFileError(f"it is no saved context: {error}") from error
    end = 0
    for name, place in header.places():
        start, stop = place.data_offsets
        dtype = _DTYPES.get(place.dtype)
        if dtype is None or min(place.shape, default=0) < 0 or start != end:
            raise UnusableFileError(f"{name} is not as it should be")
        end = start + torch.Size(place.shape).numel() * dtype.itemsize
        if stop != end:
            raise UnusableFileError(f"{name} is not as it should be")
    if end != num_bytes:
        raise UnusableFileError("it is cut short, or something was added to it")
    return raw_header, header, num_bytes


def _saved_header(header: _FileHeader) -> SavedHeader:
    try:
        return msgspec.json.decode(header.metadata.tartlet_saved_context, type=SavedHeader)
    except msgspec.DecodeError as error:
        raise UnusableFileError(f"it is no saved context: {error}") from error


def _view(buffer: torch.Tensor, place: _Place) -> torch.Tensor:
    start, end = place.data_offsets
    return buffer[start:end].view(_DTYPES[place.dtype]).view(place.shape)
