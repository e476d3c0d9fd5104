"""Which models the fused runner serves, and what it reads of their configurations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from tartlet_engine.llama_shape import read_shape, rotary_tables


def make_config(model_type: str = "llama", **settings: Any) -> Any:
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3}
    return AutoConfig.for_model(model_type, **sizes | settings)


@pytest.mark.parametrize(
    ("model_type", "settings", "windows"),
    [
        ("llama", {}, (0, 0, 0)),
        ("mistral", {"sliding_window": 7}, (7, 7, 7)),
        ("mistral", {"sliding_window": None}, (0, 0, 0)),
        ("qwen2", {}, (0, 0, 0)),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1}, (0, 9, 9)),
        ("qwen3", {}, (0, 0, 0)),
    ],
)
def test_windows_are_those_of_the_layers(model_type: str, settings: dict[str, Any], windows: tuple[int, ...]) -> None:
    """By the configuration's list of layer types, or the same in all."""
    assert windows == read_shape(make_config(model_type, **settings)).sliding_windows


@pytest.mark.parametrize(
    ("model_type", "settings", "reason"),
    [
        ("gemma2", {}, "Gemma2ForCausalLM|gemma2.*model types llama, mistral, qwen2, qwen3"),
        ("llama", {"hidden_act": "gelu"}, "activation is gelu"),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, "type dynamic"),
        ("llama", {"head_dim": 1024}, "1024 dimensions"),
        ("llama", {"quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantised in a way of their own"),
    ],
)
def test_others_are_refused_by_name(model_type: str, settings: dict[str, Any], reason: str) -> None:
    """The message says what stands against it."""
    with pytest.raises(NotImplementedError, match=reason):
        read_shape(make_config(model_type, **settings))


@pytest.mark.parametrize(
    "rope_parameters",
    [
        {"rope_type": "default", "rope_theta": 1e5},
        {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0},
        {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 64},
        {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64},
    ],
    ids=lambda each: each["rope_type"],
)  # fmt: skip
def test_angles_are_those_of_transformers(rope_parameters: dict[str, Any]) -> None:
    """Bit for bit, at every position."""
    config = make_config(rope_parameters=rope_parameters)
    cosines, sines = rotary_tables(config, 300)
    expected = LlamaRotaryEmbedding(config)(torch.empty(0), torch.arange(300).unsqueeze(0))

    for table, whole in zip((cosines, sines), expected, strict=True):
        assert torch.equal(torch.cat([table, table], dim=1), whole[0])
