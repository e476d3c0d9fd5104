"""Files of saved contexts: whole and unaltered, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from tartlet_engine.saved_file import (
    SavedHeader,
    Snapshot,
    UnusableFileError,
    read_header,
    read_saved,
    write_saved,
)

HEADER = SavedHeader("tenant", "näme/1", "tiny", "f" * 64, 3, 1_000, None, '{"roles":["user"]}')


def snapshot(num_tokens: int = 3, num_pages: int = 1, has_logits: bool = True, **changes: Any) -> Snapshot:
    header = SavedHeader(**{name: getattr(HEADER, name) for name in HEADER.__struct_fields__} | changes)
    return Snapshot(
        header,
        torch.arange(num_tokens, dtype=torch.int32),
        torch.arange(num_pages * 40, dtype=torch.int64).to(torch.uint8).view(num_pages, 40),
        torch.linspace(-1, 1, 7) if has_logits else None,
    )


def written(path: Path, saved: Snapshot) -> Path:
    with path.open("wb") as file:
        write_saved(file, saved)
    return path


def read(path: Path) -> Snapshot:
    with path.open("rb", buffering=0) as file:
        return read_saved(file)


@pytest.mark.parametrize(("num_tokens", "num_pages", "has_logits"), [(3, 1, True), (40, 10, False), (0, 0, False)])
def test_what_is_written_is_read(tmp_path: Path, num_tokens: int, num_pages: int, has_logits: bool) -> None:
    """Header and tensors come back as they were, and the header can be read alone."""
    saved = snapshot(num_tokens, num_pages, has_logits)
    path = written(tmp_path / "file", saved)
    found = read(path)
    with path.open("rb", buffering=0) as file:
        header = read_header(file)

    assert found.header == header == saved.header
    assert found.tensors.keys() == saved.tensors.keys()
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in saved.tensors.items())
    assert found.pages.shape == saved.pages.shape


def test_it_is_safetensors(tmp_path: Path) -> None:
    """The library of that name reads the same tensors."""
    saved = snapshot()
    with safe_open(written(tmp_path / "file", saved), framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118

    assert all(torch.equal(tensors[name], tensor) for name, tensor in saved.tensors.items())


def test_its_size_is_what_it_counts(tmp_path: Path) -> None:
    """What a snapshot says that it takes is what its file takes, but for the frame around the tensors."""
    saved = snapshot(40, 10)

    assert 0 < written(tmp_path / "file", saved).stat().st_size - saved.num_bytes < 1000


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_every_altered_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A file with any byte changed is refused, in the header and in the tensors."""
    path = written(tmp_path_factory.mktemp("saved") / "file", snapshot())
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)

    with pytest.raises(UnusableFileError):
        read(path)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_every_cut_is_noticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A file that ends too early, or goes on after its end, is refused."""
    path = written(tmp_path_factory.mktemp("saved") / "file", snapshot())
    content = path.read_bytes()
    path.write_bytes(
        data.draw(st.sampled_from((content[: data.draw(st.integers(0, len(content) - 1))], content + b"x")))
    )

    with pytest.raises(UnusableFileError):
        read(path)


@pytest.mark.parametrize("content", [b"", b"not a file", b"\xff" * 100, b"\x02\0\0\0\0\0\0\0{}"])
def test_what_is_no_saved_context_is_refused(tmp_path: Path, content: bytes) -> None:
    """Other content is refused without being believed in any number."""
    (tmp_path / "file").write_bytes(content)

    with pytest.raises(UnusableFileError):
        read(tmp_path / "file")
