"""Weights of the Llama family, read from safetensors one matrix at a time and packed for the kernels.

What belongs together is put together: the three projections before attention into one matrix, gate and up interleaved,
each head padded to whole vectors. A weight that this module does not know is a reason to refuse the model: computing
without it would be wrong.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from tartlet_engine.huge_memory import Arena
from tartlet_engine.llama_shape import LlamaShape
from tartlet_engine.packing import PackedMatrix, WeightFormat, pack, packed_bytes, round_up

VECTOR = 16

# Buffers of old files, which say nothing that the configuration does not.
_IGNORED = re.compile(r"\.rotary_emb\.inv_freq$")


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A packed matrix and its bias, if it has one."""

    matrix: PackedMatrix
    bias: torch.Tensor | None  # float32[N padded]


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """One decoder layer. Norms are float32, padded."""

    qkv: Linear
    attention_output: Linear
    gate_up: Linear
    down: Linear
    attention_norm: torch.Tensor
    mlp_norm: torch.Tensor
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None


@dataclass(frozen=True, slots=True, eq=False)
class LlamaWeights:
    """A whole model. The embedding and a tied head are the same matrix."""

    layers: list[LayerWeights]
    embedding: Linear
    head: Linear
    final_norm: torch.Tensor

    @property
    def rounding_error(self) -> float:
        """Root mean square of what quantisation changed, relative to the weights: the mean over all matrices."""
        matrices = [self.embedding.matrix, self.head.matrix]
        for layer in self.layers:
            matrices += [part.matrix for part in (layer.qkv, layer.attention_output, layer.gate_up, layer.down)]
        return statistics.fmean(matrix.rounding_error for matrix in matrices)


def embedding_format(weight_format: WeightFormat) -> WeightFormat:
    """Return the format of the embedding and the head: 4 bits cost too much accuracy there."""
    return WeightFormat.INT8 if weight_format is WeightFormat.INT4 else weight_format


def weights_bytes(shape: LlamaShape, weight_format: WeightFormat) -> int:
    """Return the bytes of all packed matrices."""
    heads_size, kv_size = (n * round_up(shape.head_dim, VECTOR) for n in (shape.num_heads, shape.num_kv_heads))
    mlp_size, hidden_size = round_up(shape.mlp_size, 2 * VECTOR), shape.hidden_size
    sizes = [(heads_size + 2 * kv_size, hidden_size), (hidden_size, heads_size)]
    sizes += [(2 * mlp_size, hidden_size), (hidden_size, mlp_size)]
    layer_bytes = sum(packed_bytes(weight_format, *size) for size in sizes)
    table_bytes = packed_bytes(embedding_format(weight_format), shape.vocabulary_size, hidden_size)
    return shape.num_layers * layer_bytes + (1 if shape.is_tied else 2) * table_bytes


def load_weights(
    folder: Path, shape: LlamaShape, weight_format: WeightFormat, progress: Callable[[float], None] | None = None
) -> LlamaWeights:
    """Read and pack the weights of a model folder. `progress` hears after each layer how much is done, 0 to 1.

    Raises NotImplementedError if the folder has weights that the fused runner does not know, or lacks some.

    Cost: reading the file once, and the packing (see `packing.pack`); memory for the packed weights and one matrix.
    """
    with ExitStack() as stack:
        source = _Source(folder, stack)
        loader = _Loader(shape, weight_format, source, Arena(weights_bytes(shape, weight_format)))
        layers = []
        for index in range(shape.num_layers):
            layers.append(loader.layer(index))
            if progress is not None:
                progress((index + 1) / shape.num_layers)
        weights = LlamaWeights(
            layers=layers,
            embedding=(embedding := loader.embedding("model.embed_tokens")),
            head=embedding if shape.is_tied else loader.embedding("lm_head"),
            final_norm=loader.norm("model.norm"),
        )
        source.require_all_used(ignored={"lm_head.weight"} if shape.is_tied else set())
    return weights


def pad_heads(rows: torch.Tensor, shape: LlamaShape) -> torch.Tensor:
    """Pad the rows of each head to whole vectors: from [heads * D, ...] to [heads * D padded, ...]."""
    heads = rows.reshape(-1, shape.head_dim, *rows.shape[1:])
    padding = (0, 0) * (heads.dim() - 2) + (0, round_up(shape.head_dim, VECTOR) - shape.head_dim)
    return F.pad(heads, padding).flatten(0, 1)


def interleave(parts: list[torch.Tensor]) -> torch.Tensor:
    """Take 16 rows of gate, 16 of up, and so on, as the kernels gate them."""
    padding = (0, 0) * (parts[0].dim() - 1) + (0, -len(parts[0]) % (2 * VECTOR))
    grouped = [F.pad(part, padding).reshape(-1, VECTOR, *part.shape[1:]) for part in parts]
    return torch.stack(grouped, dim=1).flatten(0, 2)


class _Source:
    """The tensors of a folder by name, and which of them have been read."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        from safetensors import safe_open

        self._folder = folder
        self._files: dict[str, Any] = {}
        self._used: set[str] = set()
        for path in sorted(folder.glob("*.safetensors")):
            file = stack.enter_context(safe_open(path, framework="pt"))
            self._files.update(dict.fromkeys(file.keys(), file))

    def read(self, name: str) -> torch.Tensor:
        """Return a tensor as float32."""
        tensor = self.find(name)
        if tensor is None:
            raise NotImplementedError(f"the fused runner needs the weight {name}, which {self._folder} does not have")
        return tensor

    def find(self, name: str) -> torch.Tensor | None:
        """Return a tensor as float32, or None if there is none of this name."""
        if name not in self._files:
            return None
        self._used.add(name)
        tensor: torch.Tensor = self._files[name].get_tensor(name)
        return tensor.float()

    def require_all_used(self, ignored: set[str]) -> None:
        """Raise NotImplementedError if there is a tensor that nobody has read."""
        unused = sorted(name for name in self._files.keys() - self._used - ignored if not _IGNORED.search(name))
        if unused:
            raise NotImplementedError(f"the fused runner does not know {len(unused)} weights, such as {unused[0]}")


@dataclass(slots=True, eq=False)
class _Loader:
    """Reads the parts of a model and packs them."""

    shape: LlamaShape
    weight_format: WeightFormat
    source: _Source
    arena: Arena
    padded_dim: int = field(init=False)

    def __post_init__(self) -> None:
        self.padded_dim = round_up(self.shape.head_dim, VECTOR)

    def layer(self, index: int) -> LayerWeights:
        prefix = f"model.layers.{index}"
        return LayerWeights(
            qkv=self._qkv(f"{prefix}.self_attn"),
            attention_output=self._attention_output(f"{prefix}.self_attn.o_proj"),
            gate_up=self._gate_up(f"{prefix}.mlp"),
            down=self._down(f"{prefix}.mlp.down_proj"),
            attention_norm=self.norm(f"{prefix}.input_layernorm"),
            mlp_norm=self.norm(f"{prefix}.post_attention_layernorm"),
            query_norm=self._head_norm(f"{prefix}.self_attn.q_norm"),
            key_norm=self._head_norm(f"{prefix}.self_attn.k_norm"),
        )

    def embedding(self, name: str) -> Linear:
        return self._linear([self.source.read(f"{name}.weight")], [], embedding_format(self.weight_format))

    def norm(self, name: str) -> torch.Tensor:
        weight = self.source.read(f"{name}.weight")
        return F.pad(weight, (0, -len(weight) % 32))

    def _head_norm(self, name: str) -> torch.Tensor | None:
        weight = self.source.find(f"{name}.weight")
        return None if weight is None else F.pad(weight, (0, self.padded_dim - len(weight)))

    def _qkv(self, prefix: str) -> Linear:
        weights, biases = [], []
        for part in ("q_proj", "k_proj", "v_proj"):
            weights.append(pad_heads(self.source.read(f"{prefix}.{part}.weight"), self.shape))
            bias = self.source.find(f"{prefix}.{part}.bias")
            if bias is not None:
                biases.append(pad_heads(bias, self.shape))
        return self._linear(weights, biases)

    def _attention_output(self, name: str) -> Linear:
        columns = self.source.read(f"{name}.weight").T
        bias = self.source.find(f"{name}.bias")
        return self._linear([pad_heads(columns, self.shape).T], [] if bias is None else [bias])

    def _gate_up(self, prefix: str) -> Linear:
        weights = [self.source.read(f"{prefix}.{part}.weight") for part in ("gate_proj", "up_proj")]
        biases = [self.source.find(f"{prefix}.{part}.bias") for part in ("gate_proj", "up_proj")]
        bias = [interleave([bias for bias in biases if bias is not None])] if biases[0] is not None else []
        return self._linear([interleave(weights)], bias)

    def _down(self, name: str) -> Linear:
        bias = self.source.find(f"{name}.bias")
        return self._linear([self.source.read(f"{name}.weight")], [] if bias is None else [bias])

    def _linear(
        self, weights: list[torch.Tensor], biases: list[torch.Tensor], weight_format: WeightFormat | None = None
    ) -> Linear:
        """Pack the weights, one under the other."""
        matrix = pack(torch.cat(weights), self.weight_format if weight_format is None else weight_format)
        matrix = replace(matrix, panels=self.arena.hold(matrix.panels))
        bias = torch.cat(biases) if biases else None
        return Linear(matrix, None if bias is None else F.pad(bias, (0, matrix.num_outputs - len(bias))))
