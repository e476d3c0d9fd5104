"""From settings to an engine: what is refused, and what `auto` chooses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from tartlet_engine.api import EngineConfig
from tartlet_engine.loading import choose_device, choose_dtype, load_engine
from tartlet_engine.tiny import make_tiny_model
from tartlet_engine.weights import ModelLoadError


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"dtype": "int7"}, "dtype must be 'auto', 'float32' or 'bfloat16', got 'int7'"),
        ({"device": "tpu"}, "device must be 'auto', 'cpu' or 'cuda', got 'tpu'"),
        ({"runner": "vllm"}, "runner must be 'auto', 'fused', 'transformers' or 'triton', got 'vllm'"),
        ({"threads": 0}, "threads must be a whole number, at least 1, got 0"),
        ({"kv_pages": 0}, "kv_pages must be a whole number, at least 1"),
        ({"kv_pages": 1.5}, "kv_pages must be a whole number, at least 1, got 1.5"),
        ({"threads": "2"}, "threads must be a whole number, at least 1, got '2'"),
        ({"page_size": -1}, "page_size must be a whole number, at least 1"),
        ({"max_batch_tokens": 0}, "max_batch_tokens must be a whole number, at least 1"),
    ],
)
def test_settings_out_of_range(tiny_folder: Path, setting: dict[str, Any], message: str) -> None:
    """A wrong setting is named with its value, before anything is loaded."""
    with pytest.raises(ValueError, match=message):
        load_engine(EngineConfig(model_name="tiny", model_path=str(tiny_folder), **setting), None)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "model.safetensors", "config.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 64])
def test_a_damaged_file(tiny_folder: Path, tmp_path: Path, name: str, content: bytes) -> None:
    """Whatever reads it, the error is one of loading."""
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    (folder / name).write_bytes(content)

    with pytest.raises(ModelLoadError):
        load_engine(EngineConfig(model_name="tiny", model_path=str(folder), kv_pages=4), None)


@pytest.mark.parametrize(
    "wrong",
    [{"hidden_size": 0}, {"num_hidden_layers": 0}, {"vocab_size": 5}, {"num_key_value_heads": 0}],
)
def test_a_configuration_that_does_not_fit_the_weights(
    tiny_folder: Path, tmp_path: Path, wrong: dict[str, int]
) -> None:
    """Numbers that contradict the weights are an error of loading, too."""
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | wrong))

    with pytest.raises(ModelLoadError):
        load_engine(EngineConfig(model_name="tiny", model_path=str(folder), kv_pages=4), None)


def test_info_and_progress(tiny_folder: Path) -> None:
    """The model's facts come from its files; progress rises to the end."""
    reports: list[tuple[str, float]] = []
    config = EngineConfig(model_name="tiny", model_path=str(tiny_folder), dtype="bfloat16", page_size=8)
    info = load_engine(config, lambda stage, done: reports.append((stage, done))).info

    assert (info.name, info.dtype, info.page_size) == ("tiny", "bfloat16", 8)
    assert info.num_pages == 64 * 2048 // 8
    assert info.eos_token_ids == (2,)
    assert [done for _, done in reports] == sorted(done for _, done in reports)
    assert reports[-1][1] == 1.0


def test_a_model_that_cannot_be_served(tmp_path: Path) -> None:
    """An architecture with attention sinks is refused at load, by name and with a hint."""
    folder = make_tiny_model(tmp_path / "gpt_oss", architecture="gpt_oss", num_local_experts=2, num_experts_per_tok=1)

    with pytest.raises(ModelLoadError, match="GptOssForCausalLM cannot be served"):
        load_engine(EngineConfig(model_name="oss", model_path=str(folder)), None)


def test_named_choices() -> None:
    """What is asked for by name is taken."""
    cpu = choose_device("cpu")

    assert cpu == torch.device("cpu")
    assert choose_dtype("float32", cpu) == torch.float32
    assert choose_dtype("bfloat16", cpu) == torch.bfloat16
    assert choose_dtype("auto", torch.device("cuda")) == torch.bfloat16


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_kernels_without_a_gpu(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's kernels asked for by name on a CPU: refused, unless its interpreter is asked for, too."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)

    with pytest.raises(ModelLoadError, match="runner is 'triton', which needs a GPU"):
        load_engine(EngineConfig(model_name="tiny", model_path=str(tiny_folder), runner="triton", kv_pages=4), None)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_a_gpu() -> None:
    """Asking for a GPU where there is none says so."""
    with pytest.raises(ValueError, match="no usable GPU"):
        choose_device("cuda")
