"""Reading a folder's weights: everything is used, nothing is missing, what is tied is held once."""

from __future__ import annotations

import io
import zlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

from tartlet_engine.llama_shape import LlamaShape, read_shape
from tartlet_engine.llama_weights import load_weights, weights_bytes
from tartlet_engine.packed_file import write_packed
from tartlet_engine.packed_model import pack_model
from tartlet_engine.packing import LAYOUT_VERSION, WeightFormat
from tartlet_engine.tiny import make_tiny_model


def read_folder_shape(folder: Path) -> LlamaShape:
    return read_shape(AutoConfig.from_pretrained(folder))


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("weight_format", list(WeightFormat), ids=lambda each: each.name)
def test_the_memory_is_known_beforehand(tmp_path: Path, weight_format: WeightFormat, is_tied: bool) -> None:
    """All packed matrices together, a tied head not counted twice."""
    folder = make_tiny_model(tmp_path, tie_word_embeddings=is_tied, head_dim=20, intermediate_size=100)
    shape = read_folder_shape(folder)
    weights = load_weights(folder, shape, weight_format)
    linears = [weights.embedding, *([] if is_tied else [weights.head])]
    for layer in weights.layers:
        linears += [layer.qkv, layer.attention_output, layer.gate_up, layer.down]

    assert weights_bytes(shape, weight_format) == sum(linear.matrix.panels.numel() for linear in linears)
    assert (weights.head is weights.embedding) == is_tied


def test_a_weight_that_is_not_known_is_refused(tmp_path: Path) -> None:
    """Computing without it would be wrong."""
    folder = make_tiny_model(tmp_path)
    path = folder / "model.safetensors"
    save_file(load_file(path) | {"model.layers.0.self_attn.sinks": torch.zeros(4)}, path, {"format": "pt"})

    with pytest.raises(NotImplementedError, match=r"1 weights, such as model\.layers\.0\.self_attn\.sinks"):
        load_weights(folder, read_folder_shape(folder), WeightFormat.FLOAT32)


def test_a_missing_weight_is_named(tmp_path: Path) -> None:
    """A folder that is not whole."""
    folder = make_tiny_model(tmp_path)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, path, {"format": "pt"})

    with pytest.raises(NotImplementedError, match=r"needs the weight model\.layers\.1\.mlp\.up_proj\.weight"):
        load_weights(folder, read_folder_shape(folder), WeightFormat.FLOAT32)


def test_buffers_of_old_files_are_ignored(tmp_path: Path) -> None:
    """Rotary frequencies are computed, whatever the file holds."""
    folder = make_tiny_model(tmp_path)
    path = folder / "model.safetensors"
    save_file(
        load_file(path) | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(8)}, path, {"format": "pt"}
    )

    assert len(load_weights(folder, read_folder_shape(folder), WeightFormat.BFLOAT16).layers) == 2


def crc32_of_weights(folder: Path, weight_format: WeightFormat) -> int:
    """One number for all tensors of a packed model."""
    file = io.BytesIO()
    model = pack_model(folder, AutoConfig.from_pretrained(folder), weight_format, context_len=1)
    write_packed(file, model, "")
    tensors, _, _ = file.getvalue().partition(b'{"key"')
    return zlib.crc32(tensors)


def test_the_layout_is_that_of_its_version(tmp_path: Path) -> None:
    """Whoever changes these numbers raises LAYOUT_VERSION: old files lie in caches, and must not be taken for new."""
    folder = make_tiny_model(tmp_path, num_layers=1, head_dim=20, intermediate_size=100, attention_bias=True)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for seed, name in enumerate(sorted(tensors)):
        numbers = (torch.arange(tensors[name].numel()) * 7919 + seed) % 1009
        tensors[name] = ((numbers - 504) / 512).view(tensors[name].shape)
    save_file(tensors, path, {"format": "pt"})

    checksums = [crc32_of_weights(folder, each) for each in WeightFormat]
    assert (LAYOUT_VERSION, checksums) == (1, [4285649434, 2660597420, 4139915352, 2416134306])
