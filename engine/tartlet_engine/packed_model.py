"""A model of the Llama family as the fused runner holds it, made from a model folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tartlet_engine.llama_shape import LlamaShape, read_shape, rotary_tables
from tartlet_engine.llama_weights import LlamaWeights, load_weights
from tartlet_engine.packing import WeightFormat

# Many short operators, and two threads wait for each other at every one: on two busy cores, SmolLM2-135M took 1 to 3 s
# with one thread, and 4 to 27 s with two.
PACKING_THREADS = 1


@dataclass(frozen=True, slots=True, eq=False)
class PackedModel:
    """All that the fused runner has to know of a model. Nothing else of its folder is needed to run it."""

    shape: LlamaShape
    context_len: int
    weight_format: WeightFormat
    weights: LlamaWeights
    cosines: torch.Tensor  # float32[context_len, D / 2], of the rotary positions
    sines: torch.Tensor


def pack_model(
    folder: Path,
    config: Any,
    weight_format: WeightFormat,
    progress: Callable[[float], None] | None = None,
    context_len: int | None = None,
) -> PackedModel:
    """Read a model folder's weights and pack them.

    Args:
        folder: holds the model's safetensors.
        config: its transformers configuration.
        weight_format: of the matrices.
        progress: hears after each layer how much is done, 0 to 1, on the calling thread.
        context_len: the greatest number of positions; None: what the configuration says.

    Raises:
        NotImplementedError: the fused runner does not serve this model.

    Cost: see `llama_weights.load_weights`.
    """
    shape = read_shape(config)
    context_len = context_len or int(config.max_position_embeddings)
    with _packing_threads():
        weights = load_weights(folder, shape, weight_format, progress)
        cosines, sines = rotary_tables(config, context_len)
    return PackedModel(shape, context_len, weight_format, weights, cosines, sines)


@contextmanager
def _packing_threads() -> Iterator[None]:
    num_threads = torch.get_num_threads()
    torch.set_num_threads(PACKING_THREADS)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)
