"""Files of packed models: what was written is read again, and nothing else is taken for it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig

from tartlet_engine.packed_file import UnusableFileError, read_packed, write_packed
from tartlet_engine.packed_model import PackedModel, pack_model
from tartlet_engine.packing import WeightFormat
from tartlet_engine.tiny import make_tiny_model

KEY = "key"


def pack(folder: Path, weight_format: WeightFormat) -> PackedModel:
    return pack_model(folder, AutoConfig.from_pretrained(folder), weight_format)


def to_bytes(model: PackedModel) -> bytes:
    file = io.BytesIO()
    write_packed(file, model, KEY)
    return file.getvalue()


def from_bytes(path: Path, content: bytes, key: str = KEY) -> PackedModel:
    path.write_bytes(content)
    with path.open("rb", buffering=0) as file:
        return read_packed(file, key)


@pytest.fixture(scope="module")
def content(tiny_folder: Path) -> bytes:
    """A file with the tiny model."""
    return to_bytes(pack(tiny_folder, WeightFormat.INT4))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where to write one."""
    return tmp_path_factory.mktemp("packed") / "file"


@pytest.mark.parametrize("weight_format", list(WeightFormat), ids=lambda each: each.name)
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_what_is_written_is_read_again(
    path: Path, tmp_path: Path, architecture: str, weight_format: WeightFormat
) -> None:
    """Every bit: with biases and without, with norms of heads and without."""
    content = to_bytes(pack(make_tiny_model(tmp_path, architecture=architecture), weight_format))

    assert to_bytes(from_bytes(path, content)) == content


def test_tied_weights_are_held_once(path: Path, tmp_path: Path) -> None:
    """In the file and in memory."""
    model = from_bytes(path, to_bytes(pack(make_tiny_model(tmp_path, tie_word_embeddings=True), WeightFormat.FLOAT32)))

    assert model.weights.head.matrix.panels.data_ptr() == model.weights.embedding.matrix.panels.data_ptr()


def test_tensors_stand_on_cache_lines(path: Path, content: bytes) -> None:
    """As the kernels ask."""
    model = from_bytes(path, content)

    assert all(layer.down.matrix.panels.data_ptr() % 64 == 0 for layer in model.weights.layers)
    assert model.sines.data_ptr() % 64 == 0


def test_another_model_is_refused(path: Path, content: bytes) -> None:
    """Whatever the file is called, its header says which model it holds."""
    with pytest.raises(UnusableFileError, match="another model"):
        from_bytes(path, content, key="other")


@given(data=st.data())
def test_no_bit_may_be_wrong(path: Path, content: bytes, data: st.DataObject) -> None:
    """In the weights, the header or the footer."""
    position = data.draw(st.integers(0, len(content) - 1) | st.integers(len(content) - 3000, len(content) - 1))
    damaged = bytearray(content)
    damaged[position] ^= 1 << data.draw(st.integers(0, 7))

    with pytest.raises(UnusableFileError):
        from_bytes(path, bytes(damaged))


@given(data=st.data())
def test_no_byte_may_be_missing(path: Path, content: bytes, data: st.DataObject) -> None:
    """At the end or at the beginning."""
    num_bytes = data.draw(st.integers(0, len(content) - 1))

    for part in (content[:num_bytes], content[len(content) - num_bytes :]):
        with pytest.raises(UnusableFileError):
            from_bytes(path, part)
