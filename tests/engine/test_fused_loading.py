"""Which runner an engine gets: the fused one where it can, torch where it cannot, an error where it must."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from tartlet_engine.api import EngineConfig
from tartlet_engine.fused_loading import load_fused, weight_format
from tartlet_engine.kernels.build import KernelsUnavailableError, load_kernels
from tartlet_engine.packing import WeightFormat
from tartlet_engine.tiny import make_tiny_model
from tartlet_engine.weights import ModelLoadError

CPU = torch.device("cpu")


@pytest.fixture
def instruction_set() -> str:
    """The best that this CPU has."""
    try:
        return load_kernels().instruction_set
    except KernelsUnavailableError as error:
        pytest.skip(str(error))


def make_config(folder: Path, **settings: Any) -> EngineConfig:
    return EngineConfig(model_name="tiny", model_path=str(folder), kv_pages=8, threads=1, **settings)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, WeightFormat.BFLOAT16),
        ({"dtype": "bfloat16"}, WeightFormat.BFLOAT16),
        ({"dtype": "float32"}, WeightFormat.FLOAT32),
        ({"dtype": "float32", "quantize": "int8"}, WeightFormat.INT8),
        ({"quantize": "int4"}, WeightFormat.INT4),
    ],
)
def test_formats_follow_the_settings(settings: dict[str, Any], expected: WeightFormat) -> None:
    """Quantisation comes first, then the dtype."""
    assert expected == weight_format(make_config(Path("anywhere"), **settings))


def test_a_llama_gets_the_fused_runner(tiny_folder: Path, instruction_set: str) -> None:
    """What it is told of says the format and the instruction set."""
    stages: list[tuple[str, float]] = []
    loaded = load_fused(make_config(tiny_folder, quantize="int4"), CPU, lambda *stage: stages.append(stage))

    assert loaded is not None
    assert (loaded.dtype, loaded.backend) == ("int4", f"cpu ({instruction_set})")
    assert (loaded.architecture, loaded.vocabulary_size, loaded.num_pages) == ("LlamaForCausalLM", 512, 8)
    assert stages[-1] == ("ready", 1.0)


def test_rounding_is_told_on_a_miss_and_on_a_hit(
    tmp_path: Path, instruction_set: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The same number, for formats that quantise."""
    folder = make_tiny_model(tmp_path)
    stages: list[str] = []
    with caplog.at_level(logging.INFO, "tartlet_engine"):
        for quantize in ("int4", "int4", "none"):
            load_fused(make_config(folder, quantize=quantize), CPU, lambda stage, _: stages.append(stage))
    first, second = (text for text in caplog.messages if "rounding_error" in text)

    assert stages.count("importing transformers") == 2, "the second load is a hit"
    assert first == second
    assert "weights=int4 rounding_error=0.0" in first


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"runner": "transformers"}, "runner is 'transformers'"),
        ({"page_size": 8}, "pages of 16 tokens, not of 8"),
    ],
)
def test_torch_is_taken_with_a_line_in_the_log(
    tiny_folder: Path, settings: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in silence."""
    with caplog.at_level(logging.INFO, "tartlet_engine"):
        assert load_fused(make_config(tiny_folder, **settings), CPU, None) is None

    assert reason in caplog.text


@pytest.mark.parametrize("settings", [{"runner": "fused"}, {"quantize": "int4"}])
def test_what_only_this_runner_has_is_not_replaced(tiny_folder: Path, settings: dict[str, Any]) -> None:
    """The error says what was asked for, and why it cannot be."""
    with pytest.raises(ModelLoadError, match="pages of 16 tokens, not of 8"):
        load_fused(make_config(tiny_folder, page_size=8, **settings), CPU, None)
