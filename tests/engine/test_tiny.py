"""The tiny random model: a real one in everything but sense."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from tartlet_engine.tiny import DEFAULT_VOCABULARY_SIZE, make_tiny_adapter, make_tiny_model


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "mistral", "gemma", "gpt2"])
def test_transformers_loads_and_generates(architecture: str, tmp_path: Path) -> None:
    """The Auto classes take the folder of every architecture, and greedy text varies and is not near a tie."""
    folder = make_tiny_model(tmp_path / architecture, architecture=architecture, seed=3)
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    chat = [{"role": "user", "content": "hello"}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt")["input_ids"]
    generated = model.generate(prompt, max_new_tokens=24, do_sample=False, eos_token_id=None)[0, prompt.shape[1] :]
    best, second = model(prompt).logits[0, -1].topk(2).values.tolist()

    assert len(set(generated.tolist())) > 6
    assert best - second > 1e-3


def test_same_seed_same_weights(tiny_folder: Path, tmp_path: Path) -> None:
    """A seed makes the same files again, another seed makes others, and torch's own random numbers go on as before."""
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    again, other = make_tiny_model(tmp_path / "again"), make_tiny_model(tmp_path / "other", seed=1)
    digests = [hashlib.sha256((folder / "model.safetensors").read_bytes()).digest() for folder in (again, other)]

    assert expected == torch.rand(1)
    assert digests[0] == hashlib.sha256((tiny_folder / "model.safetensors").read_bytes()).digest()
    assert digests[0] != digests[1]
    assert (again / "tokenizer.json").read_bytes() == (tiny_folder / "tokenizer.json").read_bytes()


def test_tokenizer_fills_the_vocabulary(tiny_folder: Path) -> None:
    """At the default size every id has a token, the bytes and the special tokens among them."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder)

    assert len(tokenizer) == DEFAULT_VOCABULARY_SIZE
    assert tokenizer.convert_tokens_to_ids(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]) == [0, 1, 2]
    assert tokenizer.decode(tokenizer.encode("Zwölf 🍰 \x00\x7f")) == "Zwölf 🍰 \x00\x7f"


def test_adapters_have_the_sizes_of_the_modules(tiny_folder: Path, tmp_path: Path) -> None:
    """For each module that is named, in each layer: A from its inputs to the rank, B from there to its outputs."""
    folder = make_tiny_adapter(tmp_path, tiny_folder, rank=3, target_modules=["k_proj"])
    tensors = load_file(folder / "adapter_model.safetensors")
    prefix = "base_model.model.model.layers.1.self_attn.k_proj"

    assert len(tensors) == 2 * 2
    assert tensors[f"{prefix}.lora_A.weight"].shape == (3, 64)
    assert tensors[f"{prefix}.lora_B.weight"].shape == (32, 3)
