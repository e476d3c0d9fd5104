"""An adapter in the form that the kernels read: its matrices, those of modules that are one matrix, and its bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig

from tartlet_engine.adapter_file import Adapter, LoraMatrices
from tartlet_engine.fused_adapter import FusedAdapter, module_sizes
from tartlet_engine.kernels.build import Kernels, KernelsUnavailableError, load_kernels
from tartlet_engine.llama_shape import LlamaShape, read_shape
from tartlet_engine.packing import WeightFormat


@pytest.fixture
def kernels() -> Kernels:
    """The kernels for the best instruction set."""
    try:
        return load_kernels()
    except KernelsUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def shape(tiny_folder: Path) -> LlamaShape:
    """The tiny model's: hidden size 64, 4 heads of 16, 2 of keys and values, an MLP of 128."""
    return read_shape(AutoConfig.from_pretrained(tiny_folder))


def test_modules_and_their_sizes(shape: LlamaShape) -> None:
    """Outputs and inputs of all linear modules of the layers, and no others."""
    sizes = module_sizes(shape)

    assert len(sizes) == 2 * 7
    assert sizes["model.layers.1.self_attn.k_proj"] == (32, 64)
    assert sizes["model.layers.0.mlp.down_proj"] == (64, 128)


def test_what_an_adapter_has_not_is_empty(kernels: Kernels, shape: LlamaShape) -> None:
    """An adapter of v in layer 1 is nothing elsewhere, and zeros for q and k; its rank is padded to a panel."""
    lora = LoraMatrices(torch.randn(3, 64), torch.ones(32, 3))
    adapter = Adapter("a", "", {"model.layers.1.self_attn.v_proj": lora})
    fused = FusedAdapter(kernels, adapter, shape, WeightFormat.FLOAT32, module_sizes(shape))
    qkv = fused.layers[1].loras[kernels.lib.TARTLET_LORA_QKV]
    others = [fused.layers[layer].loras[place] for layer in range(2) for place in range(4) if (layer, place) != (1, 0)]
    # Panels of 32 outputs, each with the 32 ranks one behind the other: those of v are the last of (64 + 32 + 32) / 32.
    panels = torch.tensor(kernels.ffi.unpack(kernels.ffi.cast("float *", qkv.up.panels), 4 * 32 * 32)).view(4, 32, 32)

    assert (qkv.down.num_outputs, qkv.down.num_inputs) == (32, 64)
    assert (qkv.up.num_outputs, qkv.up.num_inputs) == (128, 32)
    assert [(lora.down.num_outputs, lora.up.num_outputs) for lora in others] == [(0, 0)] * 7
    assert not panels[:3].any()
    assert torch.equal(panels[3, :3], torch.ones(3, 32))
    assert not panels[3, 3:].any()
    assert fused.max_rank == 32


def test_ranks_of_modules_that_are_one_matrix_add_up(kernels: Kernels, shape: LlamaShape) -> None:
    """Gate and up of rank 20 are one adapter of rank 40, padded to 64; bfloat16 takes half the bytes of float32."""
    lora = LoraMatrices(torch.randn(20, 64), torch.randn(128, 20))
    adapter = Adapter("a", "", {f"model.layers.0.mlp.{part}_proj": lora for part in ("gate", "up")})
    fused = {
        weight_format: FusedAdapter(kernels, adapter, shape, weight_format, module_sizes(shape))
        for weight_format in WeightFormat
    }

    assert fused[WeightFormat.INT4].max_rank == 64
    assert fused[WeightFormat.FLOAT32].num_bytes == 4 * (64 * 64 + 256 * 64)
    assert fused[WeightFormat.BFLOAT16].num_bytes == fused[WeightFormat.INT4].num_bytes == 2 * (64 * 64 + 256 * 64)
