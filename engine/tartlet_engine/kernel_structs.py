"""The structs that the C kernels read, made of tensors. Each keeps alive what it points at."""

from __future__ import annotations

from typing import Any

import torch

from tartlet_engine.kernels.build import Kernels
from tartlet_engine.llama_weights import LayerWeights, Linear
from tartlet_engine.packed_model import PackedModel
from tartlet_engine.packing import WeightFormat


class ModelStruct:
    """A `tartlet_model`, with everything that it points at."""

    def __init__(self, kernels: Kernels, packed: PackedModel, kv_pool: torch.Tensor, num_pages: int) -> None:
        """Point at the tensors; `pointer` is valid as long as this object lives."""
        shape, weights = packed.shape, packed.weights
        self._kernels = kernels
        self._kept_alive: list[Any] = [packed, kv_pool]
        layers = kernels.ffi.new("tartlet_layer[]", shape.num_layers)
        for layer, layer_weights, window in zip(layers, weights.layers, shape.sliding_windows, strict=True):
            self._fill_layer(layer, layer_weights)
            layer.sliding_window = window
        self._kept_alive.append(layers)
        model = kernels.ffi.new("tartlet_model *")
        model.format = (
            kernels.lib.TARTLET_FLOAT32 if packed.weight_format is WeightFormat.FLOAT32 else packed.weight_format
        )
        for name in ("num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "norm_epsilon"):
            setattr(model, name, getattr(shape, name))
        model.attention_scale = shape.head_dim**-0.5
        model.num_pages = num_pages
        model.layers = layers
        fill_matrix(kernels, model.embedding, weights.embedding)
        fill_matrix(kernels, model.head, weights.head)
        model.final_norm = self._pointer("float *", weights.final_norm)
        model.cosines = self._pointer("float *", packed.cosines)
        model.sines = self._pointer("float *", packed.sines)
        model.kv_pool = self._pointer("void *", kv_pool)
        self.pointer = model

    def _fill_layer(self, layer: Any, weights: LayerWeights) -> None:
        for name in ("qkv", "attention_output", "gate_up", "down"):
            fill_matrix(self._kernels, getattr(layer, name), getattr(weights, name))
        for name in ("attention_norm", "mlp_norm", "query_norm", "key_norm"):
            setattr(layer, name, self._pointer("float *", getattr(weights, name)))

    def _pointer(self, c_type: str, tensor: torch.Tensor | None) -> Any:
        return pointer(self._kernels, c_type, tensor)


def pointer(kernels: Kernels, c_type: str, tensor: torch.Tensor | None) -> Any:
    """Return the address of a contiguous tensor's data, or NULL. Keeps nothing alive."""
    assert tensor is None or tensor.is_contiguous()
    return kernels.ffi.cast(c_type, 0 if tensor is None else tensor.data_ptr())


def fill_matrix(kernels: Kernels, target: Any, linear: Linear) -> None:
    """Fill a `tartlet_matrix`, which keeps nothing alive."""
    target.format = linear.matrix.format
    target.num_outputs = linear.matrix.num_outputs
    target.num_inputs = linear.matrix.num_inputs
    target.panels = pointer(kernels, "void *", linear.matrix.panels)
    target.bias = pointer(kernels, "float *", linear.bias)
