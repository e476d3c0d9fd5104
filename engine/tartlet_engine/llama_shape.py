"""What the fused runner has to know of a model of the Llama family, and which models it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

SERVED_MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")

# Rotary positions whose angles do not depend on how long the context is.
SERVED_ROPE_TYPES = ("default", "linear", "llama3", "yarn")

MAX_HEAD_DIM = 512


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """Sizes and constants of a model."""

    name: str  # of the architecture
    num_layers: int
    hidden_size: int
    mlp_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocabulary_size: int
    norm_epsilon: float
    is_tied: bool  # the head's weights are the embedding's
    sliding_windows: tuple[int, ...]  # by layer: tokens that a query sees, itself included; 0: all


def read_shape(config: Any) -> LlamaShape:
    """Read a transformers configuration.

    Raises NotImplementedError, naming the architecture and what stands against it, if the fused runner would not
    compute what transformers does.
    """
    name = (getattr(config, "architectures", None) or [config.model_type])[0]
    obstacle = _obstacle(config)
    if obstacle is not None:
        raise NotImplementedError(f"the fused runner does not serve {name}: {obstacle}")
    return LlamaShape(
        name=name,
        num_layers=config.num_hidden_layers,
        hidden_size=config.hidden_size,
        mlp_size=config.intermediate_size,
        num_heads=config.num_attention_heads,
        num_kv_heads=config.num_key_value_heads,
        head_dim=_head_dim(config),
        vocabulary_size=config.vocab_size,
        norm_epsilon=config.rms_norm_eps,
        is_tied=config.tie_word_embeddings,
        sliding_windows=_sliding_windows(config),
    )


def rotary_tables(config: Any, context_len: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cosines and sines of all positions, float32[context_len, D / 2], as transformers computes them."""
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    rotary = LlamaRotaryEmbedding(config)
    positions = torch.arange(context_len).unsqueeze(0)
    with torch.inference_mode():
        cosines, sines = rotary(torch.empty(0, dtype=torch.float32), positions)
    half = _head_dim(config) // 2  # the second half repeats the first
    return cosines[0, :, :half].contiguous(), sines[0, :, :half].contiguous()


def _obstacle(config: Any) -> str | None:
    """Return why this model cannot be served, or None."""
    if config.model_type not in SERVED_MODEL_TYPES:
        return f"it knows the model types {', '.join(SERVED_MODEL_TYPES)}"
    if config.hidden_act != "silu":
        return f"its activation is {config.hidden_act}, not silu"
    rope_parameters = config.rope_parameters
    rope_type = rope_parameters.get("rope_type", "default")
    if rope_type not in SERVED_ROPE_TYPES:
        return f"its rotary positions are of the type {rope_type}"
    if rope_parameters.get("partial_rotary_factor", 1.0) != 1.0:
        return "only a part of each head is rotated"
    head_dim = _head_dim(config)
    if head_dim % 2 or head_dim > MAX_HEAD_DIM:
        return f"its heads have {head_dim} dimensions"
    if getattr(config, "quantization_config", None) is not None:
        return "its weights are quantised in a way of their own"
    return None


def _head_dim(config: Any) -> int:
    head_dim: int = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return head_dim


def _sliding_windows(config: Any) -> tuple[int, ...]:
    window: int = getattr(config, "sliding_window", None) or 0
    num_layers: int = config.num_hidden_layers
    layer_types = getattr(config, "layer_types", None)
    if layer_types is None:
        # Mistral slides in every layer; Llama has no such setting.
        return (window,) * num_layers
    return tuple(window if layer_type == "sliding_attention" else 0 for layer_type in layer_types)
