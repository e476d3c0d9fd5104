"""Loading weights: whole, safe and servable, or refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from tartlet_engine.tiny import make_tiny_model
from tartlet_engine.weights import ModelLoadError, convert_gguf, load_model


def test_loads_as_transformers_does(tiny_folder: Path) -> None:
    """The logits are those of the model that transformers itself loads, and progress ends with all of it."""
    heard: list[float] = []
    model, config = load_model(tiny_folder, torch.float32, progress=lambda _stage, done: heard.append(done))
    prompt = torch.tensor([[5, 6, 7]])

    assert config.model_type == "llama"
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert torch.equal(model(prompt).logits, AutoModelForCausalLM.from_pretrained(tiny_folder)(prompt).logits)
    assert heard == sorted(heard)
    assert heard[-1] == 1.0


def test_casts_to_the_dtype_asked_for(tiny_folder: Path) -> None:
    """A float32 file gives a bfloat16 model."""
    model, _ = load_model(tiny_folder, torch.bfloat16)

    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}


def test_refuses_pickles(tiny_folder: Path, tmp_path: Path) -> None:
    """A folder whose weights are a pickle is refused without reading them."""
    shutil.copy(tiny_folder / "config.json", tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")

    with pytest.raises(ModelLoadError, match="no safetensors"):
        load_model(tmp_path, torch.float32)


def test_refuses_a_folder_without_a_model(tmp_path: Path) -> None:
    """A folder that holds something else is refused."""
    with pytest.raises(ModelLoadError, match=r"no config\.json"):
        load_model(tmp_path, torch.float32)


def test_refuses_half_a_model(tiny_folder: Path, tmp_path: Path) -> None:
    """A file that lacks a weight is refused, where transformers would make one up."""
    shutil.copytree(tiny_folder, tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(ModelLoadError, match=r"1 weights are missing .* model\.layers\.1\.mlp\.up_proj\.weight"):
        load_model(tmp_path, torch.float32)


@pytest.mark.parametrize("num_bytes", [0, 5000, 100_000])
def test_refuses_a_damaged_file(num_bytes: int, tiny_folder: Path, tmp_path: Path) -> None:
    """A file that was cut off is refused."""
    shutil.copytree(tiny_folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "model.safetensors").write_bytes((tiny_folder / "model.safetensors").read_bytes()[:num_bytes])

    with pytest.raises(ModelLoadError, match="cannot be read"):
        load_model(tmp_path, torch.float32)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hidden_size": "many"}, "hidden_size"),
        ({"hidden_size": 128}, "of the wrong shape"),
        ({"hidden_act": "none"}, "cannot be read"),
        ({"num_key_value_heads": 0}, "cannot be read"),
    ],
)
def test_refuses_a_configuration_that_does_not_fit(
    changes: dict[str, object], reason: str, tiny_folder: Path, tmp_path: Path
) -> None:
    """Settings that are no numbers, or not those of the weights, are refused."""
    shutil.copytree(tiny_folder, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))

    with pytest.raises(ModelLoadError, match=reason):
        load_model(tmp_path, torch.float32)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "bloom", "architectures": ["BloomForCausalLM"]}, "BloomForCausalLM does its attention"),
        ({"model_type": "mamba", "architectures": ["MambaForCausalLM"]}, "MambaForCausalLM"),
        ({"model_type": "qwen3_next", "architectures": ["Qwen3NextForCausalLM"]}, "Qwen3NextForCausalLM has layers"),
        ({"model_type": "t5", "architectures": ["T5Model"]}, "T5Model is not a causal language model"),
        ({"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config"}}, "no model of the type 'mine'"),
    ],
)
def test_refuses_architectures_by_name(
    config: dict[str, object], reason: str, tiny_folder: Path, tmp_path: Path
) -> None:
    """What pages cannot serve is refused before any weight is read, and code in the folder never runs."""
    shutil.copy(tiny_folder / "model.safetensors", tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "mine.py").write_text("raise SystemExit('ran')")

    with pytest.raises(ModelLoadError, match=reason):
        load_model(tmp_path, torch.float32)


def test_refuses_what_is_no_gguf(tmp_path: Path) -> None:
    """A file of another kind is refused, and nothing is left behind."""
    (tmp_path / "model.gguf").write_bytes(b"PK\x03\x04 not a model")

    with pytest.raises(ModelLoadError, match="not a GGUF file"):
        convert_gguf(tmp_path / "model.gguf", tmp_path / "converted")
    assert [path.name for path in tmp_path.iterdir()] == ["model.gguf"]


def test_converts_a_gguf_exactly(tmp_path: Path) -> None:
    """Weights, tokenizer, chat template and eos survive, in float32; an interrupted conversion leaves nothing."""
    source = make_tiny_model(tmp_path / "source", vocabulary_size=512)
    write_gguf(source, tmp_path / "tiny.gguf")

    def interrupt(stage: str, done: float) -> None:
        if done > 0.8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert_gguf(tmp_path / "tiny.gguf", tmp_path / "models" / "tiny", interrupt)
    assert list((tmp_path / "models").iterdir()) == []
    folder = convert_gguf(tmp_path / "tiny.gguf", tmp_path / "models" / "tiny")
    model, config = load_model(folder, torch.float32)
    original, _ = load_model(source, torch.float32)
    tokenizer, original_tokenizer = AutoTokenizer.from_pretrained(folder), AutoTokenizer.from_pretrained(source)
    prompt = torch.tensor([[5, 6, 7]])

    assert config.eos_token_id == 2
    torch.testing.assert_close(model(prompt).logits, original(prompt).logits)
    assert tokenizer.chat_template == original_tokenizer.chat_template
    assert tokenizer.encode("Paris, 12 🍰") == original_tokenizer.encode("Paris, 12 🍰")
    assert convert_gguf(tmp_path / "tiny.gguf", folder) == folder


def test_refuses_damaged_gguf(tmp_path: Path) -> None:
    """A file cut off anywhere, of a later version or of an unknown architecture is refused, and leaves nothing."""
    write_gguf(make_tiny_model(tmp_path / "source"), tmp_path / "whole.gguf")
    whole = (tmp_path / "whole.gguf").read_bytes()
    damaged = [whole[:length] for length in (5, 30, 9000, 20_000, 400_000)]
    damaged += [whole[:4] + b"\x09" + whole[5:], whole.replace(b"llama", b"lxama")]
    (tmp_path / "models").mkdir()
    for content in damaged:
        (tmp_path / "damaged.gguf").write_bytes(content)
        with pytest.raises(ModelLoadError, match=r"damaged\.gguf cannot be read"):
            convert_gguf(tmp_path / "damaged.gguf", tmp_path / "models" / "damaged")

    assert list((tmp_path / "models").iterdir()) == []


def write_gguf(folder: Path, path: Path) -> None:
    """Write a tiny Llama as GGUF, unquantised, in the way that llama.cpp's converter does."""
    from gguf import GGUFWriter

    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token.startswith("<|") else 1 for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_chat_template((folder / "chat_template.jinja").read_text())
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v"}
    names |= {"self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up"}
    names |= {"mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    names |= {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for name, weight in load_file(folder / "model.safetensors").items():
        if "q_proj" in name or "k_proj" in name:  # the two halves of each head, interleaved
            heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
            weight = weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
        name = name.replace("model.layers.", "blk.")
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        writer.add_tensor(name, weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
