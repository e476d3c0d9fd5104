"""A tiny random model, and adapters for it, made in a second without a download.

For tests, for `--model tiny` and for a first look on a machine without network. It is a real causal language model
folder (safetensors, configuration, byte-level BPE tokenizer, ChatML template) that transformers' Auto classes load; its
text is noise, but always the same noise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DEFAULT_VOCABULARY_SIZE = 512

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# What the BPE merges are learned from: enough variety for a few hundred merges.
_CORPUS = """\
The quick brown fox jumps over the lazy dog. A model reads tokens, computes keys and values, and writes the next token.
Write a catchy subject line for a sale of skincare: glow into autumn, treat your skin, twenty percent off everything.
What is the capital of France? The capital of France is Paris. Which of these drafts is the best one, and why?
def fibonacci(number): return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)
{"name": "tartlet", "version": 1, "features": ["fork", "generate", "stream"], "ready": true, "limit": null}
In 2024, 12345 people lived in 67 towns; 890 of them were bakers. Äpfel, crème brûlée, naïve, 日本語, и ещё 🍰.
"""


def make_tiny_model(
    folder: Path | str,
    *,
    seed: int = 0,
    architecture: str = "llama",
    vocabulary_size: int = DEFAULT_VOCABULARY_SIZE,
    num_layers: int = 2,
    hidden_size: int = 64,
    num_heads: int = 4,
    num_kv_heads: int = 2,
    context_len: int = 2048,
    **overrides: Any,
) -> Path:
    """Write a seeded random causal language model into `folder` and return the folder.

    Args:
        folder: made if it is not there; files of the same names are replaced.
        seed: the same seed and sizes give the same weights, on the same version of torch.
        architecture: a model type of transformers: llama, qwen2, qwen3, mistral, gemma, gemma2, gpt2 ...
        vocabulary_size: at least 259 (256 bytes and 3 special tokens). What the tokenizer cannot fill stays as ids
            without a token, which real models have too.
        num_layers: decoder layers.
        hidden_size: a multiple of `2 * num_heads`.
        num_heads: query heads.
        num_kv_heads: key and value heads, a divisor of `num_heads`; ignored by architectures without grouped queries.
        context_len: the greatest number of positions.
        overrides: further fields of the architecture's configuration, by transformers' names.

    Cost: about a second, most of it the import of transformers.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

    from tartlet_engine.weights import quiet_transformers

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    special_ids = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 0}
    settings: dict[str, Any] = {
        "vocab_size": vocabulary_size,
        "hidden_size": hidden_size,
        "intermediate_size": 2 * hidden_size,
        "num_hidden_layers": num_layers,
        "num_attention_heads": num_heads,
        "num_key_value_heads": num_kv_heads,
        "head_dim": hidden_size // num_heads,
        "max_position_embeddings": context_len,
        "initializer_range": 0.3,  # far apart logits: greedy choices that rounding does not flip
        "tie_word_embeddings": False,
        **special_ids,
        **overrides,
    }
    if architecture == "gpt2":
        settings["n_inner"] = settings.pop("intermediate_size")
    config = AutoConfig.for_model(architecture, **settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.generation_config = GenerationConfig(**special_ids)
    with quiet_transformers():
        model.save_pretrained(folder)
    _write_tokenizer(folder, vocabulary_size, context_len)
    return folder


def make_tiny_adapter(
    folder: Path | str,
    model_folder: Path | str,
    *,
    seed: int = 0,
    rank: int = 4,
    target_modules: Sequence[str] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    **settings: Any,
) -> Path:
    """Write a seeded random LoRA adapter for a model into `folder`, in the format of PEFT, and return the folder.

    Args:
        folder: made if it is not there; files of the same names are replaced.
        model_folder: the model that it is for.
        seed: the same seed, model and rank give the same weights, on the same version of torch.
        rank: of all modules.
        target_modules: ends of names of the model's modules.
        settings: further fields of `adapter_config.json`, by PEFT's names.

    Cost: as `make_tiny_model`.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    from tartlet_engine.weights import quiet_transformers

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with quiet_transformers():
        model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, module in model.named_modules():
        if name.rpartition(".")[2] not in target_modules:
            continue
        outputs, inputs = module.weight.shape if isinstance(module, torch.nn.Linear) else module.weight.shape[::-1]
        # Small enough for the merged model to be as well behaved as the model, and large enough to change its text.
        tensors[f"base_model.model.{name}.lora_A.weight"] = 0.3 * torch.randn(rank, inputs, generator=generator)
        tensors[f"base_model.model.{name}.lora_B.weight"] = 0.1 * torch.randn(outputs, rank, generator=generator)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "tiny",
        "inference_mode": True,
        "r": rank,
        "lora_alpha": 2 * rank,
        "lora_dropout": 0.1,
        "bias": "none",
        "use_rslora": False,
        "use_dora": False,
        "modules_to_save": None,
        "target_modules": list(target_modules),
        **settings,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return folder


def _write_tokenizer(folder: Path, vocabulary_size: int, context_len: int) -> None:
    """Train a byte-level BPE on the corpus above, and write it with its configuration and chat template."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    special_tokens = [AddedToken(text, special=True, normalized=False) for text in (END_OF_TEXT, TURN_START, TURN_END)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=special_tokens,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS.splitlines(keepends=True), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": TURN_END,
        "pad_token": END_OF_TEXT,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_len,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
