"""A LoRA adapter as the fused runner holds it: packed for the kernels, like the matrices that it adds to.

Where several modules are one matrix (q, k and v; gate and up), their adapters are one, too: the ranks stand one behind
the other, and each module's outputs take only its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tartlet_engine.adapter_file import Adapter, LoraMatrices
from tartlet_engine.kernel_structs import fill_matrix
from tartlet_engine.kernels.build import Kernels
from tartlet_engine.llama_shape import LlamaShape
from tartlet_engine.llama_weights import Linear, interleave, pad_heads
from tartlet_engine.packing import WeightFormat, pack

ATTENTION_MODULES = ("q_proj", "k_proj", "v_proj")
MLP_MODULES = ("gate_proj", "up_proj")

ModuleSizes = dict[str, tuple[int, int]]  # outputs and inputs by the module's name


class FusedAdapter:
    """The `tartlet_adapter_layer[]` of an adapter, with everything that it points at."""

    def __init__(
        self, kernels: Kernels, adapter: Adapter, shape: LlamaShape, format_of_model: WeightFormat, sizes: ModuleSizes
    ) -> None:
        """Pack an adapter whose modules are all in `sizes`. `layers` is valid as long as this object lives."""
        self._kernels = kernels
        self._adapter = adapter
        self._shape = shape
        self._sizes = sizes
        self._format = WeightFormat.FLOAT32 if format_of_model is WeightFormat.FLOAT32 else WeightFormat.BFLOAT16
        self._kept_alive: list[Linear] = []
        self.num_bytes = 0
        self.max_rank = 0  # padded
        self.layers = kernels.ffi.new("tartlet_adapter_layer[]", shape.num_layers)
        for index in range(shape.num_layers):
            self._fill_layer(self.layers[index].loras, f"model.layers.{index}")

    def _fill_layer(self, loras: Any, prefix: str) -> None:
        lib = self._kernels.lib
        attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
        self._fill(
            loras[lib.TARTLET_LORA_QKV],
            [f"{attention}.{module}" for module in ATTENTION_MODULES],
            arrange=lambda ups: torch.cat([pad_heads(up, self._shape) for up in ups]),
        )
        self._fill(
            loras[lib.TARTLET_LORA_ATTENTION_OUTPUT],
            [f"{attention}.o_proj"],
            arrange_inputs=lambda down: pad_heads(down.T, self._shape).T,
        )
        self._fill(loras[lib.TARTLET_LORA_GATE_UP], [f"{mlp}.{module}" for module in MLP_MODULES], arrange=interleave)
        self._fill(loras[lib.TARTLET_LORA_DOWN], [f"{mlp}.down_proj"])

    def _fill(
        self,
        lora: Any,
        modules: list[str],
        arrange: Callable[[list[torch.Tensor]], torch.Tensor] = torch.cat,
        arrange_inputs: Callable[[torch.Tensor], torch.Tensor] = lambda down: down,
    ) -> None:
        """Pack what the adapter has for modules that are one matrix; leave the struct empty if it has nothing."""
        found = [self._adapter.modules.get(module) for module in modules]
        if not any(found):
            return
        down, ups = _joined(found, [self._sizes[module][0] for module in modules])
        for target, weights in ((lora.down, arrange_inputs(down)), (lora.up, arrange(ups))):
            linear = Linear(pack(weights, self._format), None)
            fill_matrix(self._kernels, target, linear)
            self._kept_alive.append(linear)
            self.num_bytes += linear.matrix.panels.nbytes
        self.max_rank = max(self.max_rank, lora.down.num_outputs)


def module_sizes(shape: LlamaShape) -> ModuleSizes:
    """Return the modules of a model that adapters can add to: the linear ones of its layers."""
    heads, kv_heads = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    in_layer = {
        "self_attn.q_proj": (heads, shape.hidden_size),
        "self_attn.k_proj": (kv_heads, shape.hidden_size),
        "self_attn.v_proj": (kv_heads, shape.hidden_size),
        "self_attn.o_proj": (shape.hidden_size, heads),
        "mlp.gate_proj": (shape.mlp_size, shape.hidden_size),
        "mlp.up_proj": (shape.mlp_size, shape.hidden_size),
        "mlp.down_proj": (shape.hidden_size, shape.mlp_size),
    }
    return {
        f"model.layers.{index}.{name}": size for index in range(shape.num_layers) for name, size in in_layer.items()
    }


def _joined(found: Sequence[LoraMatrices | None], num_outputs: list[int]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Put the ranks of several modules one behind the other: one float32[R, K], and a float32[N, R] for each module."""
    down = torch.cat([matrices.down for matrices in found if matrices is not None])
    ups, start = [], 0
    for matrices, size in zip(found, num_outputs, strict=True):
        up = torch.zeros(size, len(down))
        if matrices is not None:
            rank = matrices.up.shape[1]
            up[:, start : start + rank] = matrices.up
            start += rank
        ups.append(up)
    return down, ups
