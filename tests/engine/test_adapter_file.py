"""Adapter folders: read as PEFT means them, and refused by name where that is not possible."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tartlet_engine.adapter_file import CONFIG_FILE, WEIGHTS_FILE, read_adapter
from tartlet_engine.tiny import make_tiny_adapter
from tartlet_engine.weights import ModelLoadError

Q_PROJ, V_PROJ = (f"model.layers.0.self_attn.{part}_proj" for part in "qv")
A_OF_Q = f"base_model.model.{Q_PROJ}.lora_A.weight"
MAX_BYTES = 1 << 20


@pytest.fixture
def make(tiny_folder: Path, tmp_path: Path) -> Callable[..., Path]:
    """Write an adapter for q and v of the tiny model, of rank 4 and alpha 8, with other settings if wanted."""

    def write(change: Callable[[dict[str, torch.Tensor]], None] | None = None, **config: Any) -> Path:
        folder = make_tiny_adapter(tmp_path, tiny_folder, target_modules=["q_proj", "v_proj"])
        settings = json.loads((folder / CONFIG_FILE).read_text())
        (folder / CONFIG_FILE).write_text(json.dumps(settings | config))
        if change is not None:
            tensors = load_file(folder / WEIGHTS_FILE)
            change(tensors)
            save_file(tensors, folder / WEIGHTS_FILE)
        return folder

    return write


def test_matrices_and_their_scale(make: Callable[..., Path]) -> None:
    """Two for each module in each layer, the second times alpha over the rank."""
    folder = make()
    tensors = load_file(folder / WEIGHTS_FILE)
    adapter = read_adapter("polite", folder, MAX_BYTES)
    matrices = adapter.modules[Q_PROJ]

    assert len(adapter.modules) == 4
    assert matrices.size == (64, 64)
    assert adapter.modules[V_PROJ].size == (32, 64)
    assert torch.equal(matrices.down, tensors[A_OF_Q])
    assert torch.equal(matrices.up, tensors[A_OF_Q.replace("lora_A", "lora_B")] * 2)


def test_scales_of_their_own(make: Callable[..., Path]) -> None:
    """By the root of the rank, and by names of modules, the longest ones too."""

    def scale(**config: Any) -> float:
        folder = make(**config)
        up = load_file(folder / WEIGHTS_FILE)[A_OF_Q.replace("lora_A", "lora_B")]
        return float(read_adapter("a", folder, MAX_BYTES).modules[Q_PROJ].up[0, 0] / up[0, 0])

    assert scale(use_rslora=True, lora_alpha=8) == 4.0
    assert scale(alpha_pattern={"q_proj": 2}) == 0.5
    assert scale(alpha_pattern={Q_PROJ: 1.0}) == 0.25
    assert scale(alpha_pattern={"roj": 1.0, "v_proj": 3}) == 2.0


def test_ranks_of_their_own(make: Callable[..., Path]) -> None:
    """A module whose rank another one than `r` is."""

    def shrink(tensors: dict[str, torch.Tensor]) -> None:
        for name in [name for name in tensors if "v_proj" in name]:
            tensors[name] = (tensors[name][:2] if "lora_A" in name else tensors[name][:, :2]).contiguous()

    adapter = read_adapter("a", make(shrink, rank_pattern={"self_attn.v_proj": 2}), MAX_BYTES)

    assert adapter.modules[V_PROJ].down.shape == (2, 64)
    assert adapter.modules[Q_PROJ].down.shape == (4, 64)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_other_dtypes_become_float32(make: Callable[..., Path], dtype: torch.dtype) -> None:
    """Without rounding anything."""

    def convert(tensors: dict[str, torch.Tensor]) -> None:
        tensors |= {name: tensor.to(dtype) for name, tensor in tensors.items()}

    folder = make(convert)
    down = read_adapter("a", folder, MAX_BYTES).modules[Q_PROJ].down

    assert down.dtype == torch.float32
    assert torch.equal(down.to(dtype), load_file(folder / WEIGHTS_FILE)[A_OF_Q])


def test_the_digest_is_of_weights_and_settings(make: Callable[..., Path]) -> None:
    """The same files have the same digest, and a change of either has another."""
    first = read_adapter("a", make(), MAX_BYTES).digest
    again = read_adapter("b", make(), MAX_BYTES).digest
    other_scale = read_adapter("a", make(lora_alpha=9), MAX_BYTES).digest
    other_weights = read_adapter("a", make(lambda tensors: tensors[A_OF_Q].add_(1)), MAX_BYTES).digest

    assert first == again
    assert len({first, other_scale, other_weights}) == 3


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"peft_type": "LOHA"}, "peft_type is 'LOHA'"),
        ({"use_dora": True}, "use_dora is True"),
        ({"bias": "lora_only"}, "bias is 'lora_only'"),
        ({"lora_bias": True}, "lora_bias is True"),
        ({"modules_to_save": ["lm_head"]}, r"modules_to_save is \['lm_head'\]"),
        ({"layer_replication": [[0, 2]]}, "layer_replication is"),
        ({"trainable_token_indices": [1]}, "trainable_token_indices is"),
        ({"alora_invocation_tokens": [1]}, "alora_invocation_tokens is"),
        ({"something_new": 3}, "something_new is 3"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights is 'pissa', which changes the model"),
        ({"r": 0}, "rank r must be a whole number, at least 1, got 0"),
        ({"r": True}, "got True"),
        ({"r": 8}, "q_proj should have rank 8, and has lora_A"),
        ({"lora_alpha": None}, "lora_alpha must be a finite number, got None"),
        ({"lora_alpha": 10**400}, "lora_alpha must be a finite number"),
        ({"lora_alpha": float("nan")}, "lora_alpha must be a finite number, got nan"),
        ({"use_rslora": "yes"}, "use_rslora must be true or false, got 'yes'"),
        ({"rank_pattern": ["q_proj"]}, r"rank_pattern must have numbers by names of modules, got \['q_proj'\]"),
        ({"alpha_pattern": {"q.*": 3}}, r"alpha_pattern has the expression 'q\.\*'"),
        ({"alpha_pattern": {"q_proj": "3"}}, "gives q_proj '3'"),
        ({"target_modules": ["q_proj"]}, "weights for model.layers.0.self_attn.v_proj, which is none of"),
        ({"target_modules": ["q_proj", "v_proj", "o_proj"]}, "target_modules name o_proj, for which"),
    ],
)
def test_settings_that_are_not_supported(make: Callable[..., Path], config: dict[str, Any], message: str) -> None:
    """The error names the adapter, the setting and its value."""
    with pytest.raises(ModelLoadError, match=f"the adapter 'polite' cannot be used: .*{message}"):
        read_adapter("polite", make(**config), MAX_BYTES)


def test_a_rank_of_nothing_is_refused(make: Callable[..., Path]) -> None:
    """Not even with weights that fit it: no scale can be divided by it."""

    def empty(tensors: dict[str, torch.Tensor]) -> None:
        for name in [name for name in tensors if "v_proj" in name]:
            tensors[name] = (tensors[name][:0] if "lora_A" in name else tensors[name][:, :0]).contiguous()

    with pytest.raises(ModelLoadError, match=r"rank_pattern gives .*v_proj the rank 0, which must be at least 1"):
        read_adapter("a", make(empty, rank_pattern={"v_proj": 0}), MAX_BYTES)


def remove(tensors: dict[str, torch.Tensor]) -> None:
    del tensors[A_OF_Q]


def add_dora(tensors: dict[str, torch.Tensor]) -> None:
    tensors[f"base_model.model.{Q_PROJ}.lora_magnitude_vector"] = torch.ones(64)


def add_embedding(tensors: dict[str, torch.Tensor]) -> None:
    tensors["base_model.model.model.embed_tokens.lora_embedding_A"] = torch.ones(4, 512)


def make_infinite(tensors: dict[str, torch.Tensor]) -> None:
    tensors[A_OF_Q][0, 0] = float("inf")


def make_whole(tensors: dict[str, torch.Tensor]) -> None:
    tensors[A_OF_Q] = tensors[A_OF_Q].int()


def make_large(tensors: dict[str, torch.Tensor]) -> None:
    tensors[A_OF_Q.replace("lora_A", "lora_B")].fill_(3e38)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove, "q_proj it has only lora_B"),
        (add_dora, "lora_magnitude_vector is not supported"),
        (add_embedding, "lora_embedding_A is not supported"),
        (make_infinite, "lora_A.weight holds numbers that are not finite"),
        (make_whole, r"lora_A.weight is int32\[4, 64\], not a matrix of float32"),
        (make_large, "lora_B times the scale 2 is too large for float32"),
        (dict.clear, "holds no weights"),
    ],
)
def test_weights_that_are_not_supported(make: Callable[..., Path], change: Any, message: str) -> None:
    """The error names the tensor."""
    with pytest.raises(ModelLoadError, match=message):
        read_adapter("polite", make(change), MAX_BYTES)


@pytest.mark.parametrize("file", [CONFIG_FILE, WEIGHTS_FILE])
def test_damaged_and_missing_files(make: Callable[..., Path], file: str) -> None:
    """Cut short, empty, another format, or not there: one typed error, which names the file."""
    folder = make()
    whole = (folder / file).read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"\x80\x04pickle", b"[]", b"[" * 100_000):
        (folder / file).write_bytes(content)
        with pytest.raises(ModelLoadError, match=file):
            read_adapter("polite", folder, MAX_BYTES)
    (folder / file).unlink()
    with pytest.raises(ModelLoadError, match=f"{file} cannot be read"):
        read_adapter("polite", folder, MAX_BYTES)


def test_files_that_are_too_large_are_not_read(make: Callable[..., Path]) -> None:
    """The error says how many bytes are left."""
    with pytest.raises(ModelLoadError, match="more than the 1,000 bytes left"):
        read_adapter("polite", make(), 1000)


@pytest.mark.parametrize("name", ["", "a b", "../a", "é", "a" * 129])
def test_names_that_cannot_be(make: Callable[..., Path], name: str) -> None:
    """As those of saved contexts."""
    with pytest.raises(ModelLoadError, match="cannot be named"):
        read_adapter(name, make(), MAX_BYTES)
