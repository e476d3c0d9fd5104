"""The runner: logits equal transformers', whatever the batch; what cannot be served is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from tartlet_engine.accounts import RunAccount
from tartlet_engine.attention import ATTENTION_NAME, register_attention
from tartlet_engine.batch import build_batch, order_chunks
from tartlet_engine.kv_cache import KvCache
from tartlet_engine.model_runner import TransformersRunner, probe_layer_shapes
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_plan import Chunk
from tartlet_engine.tiny import make_tiny_model
from tartlet_engine.weights import load_model

CPU = torch.device("cpu")
NUM_PAGES, PAGE_SIZE = 64, 4


@pytest.fixture(scope="module")
def models(tiny_folder: Path) -> tuple[Any, Any]:
    """The tiny model with paged attention, and as transformers loads it."""
    register_attention()
    paged, _ = load_model(tiny_folder, torch.float32, CPU, ATTENTION_NAME)
    return paged, AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32).eval()


def make_sequences(pool: PagePool, lengths: list[int]) -> list[Sequence]:
    account = RunAccount(1, "local", None, None)
    return [
        Sequence(number, account, PageTable(pool, account), [(31 * number + 7 * i) % 512 for i in range(length)])
        for number, length in enumerate(lengths)
    ]


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    cuts=st.lists(st.integers(1, 15), min_size=1, max_size=6),
)
@settings(max_examples=25)
def test_logits_equal_transformers_in_any_chunks(models: tuple[Any, Any], lengths: list[int], cuts: list[int]) -> None:
    """However prompts are cut and mixed into steps, the last token's logits are those of one dense forward pass."""
    paged, plain = models
    pool = PagePool(NUM_PAGES, PAGE_SIZE)
    runner = TransformersRunner(
        paged, KvCache(probe_layer_shapes(paged, CPU), NUM_PAGES, PAGE_SIZE, torch.float32, CPU)
    )
    sequences = make_sequences(pool, lengths)
    logits: dict[int, torch.Tensor] = {}
    turn = 0
    while len(logits) < len(sequences):
        chunks = []
        for sequence in sequences:
            num_tokens = min(cuts[turn % len(cuts)], len(sequence.token_ids) - sequence.num_computed)
            turn += 1
            if num_tokens:
                sequence.page_table.reserve(sequence.num_computed, sequence.num_computed + num_tokens)
                chunks.append(Chunk(sequence, sequence.num_computed, num_tokens))
        chunks = order_chunks(chunks)
        rows = iter(runner.forward(build_batch(chunks, [], PAGE_SIZE, CPU)))
        for chunk in chunks:
            chunk.sequence.num_computed = chunk.end
            if chunk.logit_slots:
                logits[chunk.sequence.context_id] = next(rows)

    for sequence in sequences:
        with torch.inference_mode():
            expected = plain(torch.tensor([sequence.token_ids])).logits[0, -1]
        torch.testing.assert_close(logits[sequence.context_id], expected, atol=1e-4, rtol=0)


def test_attention_outside_the_interface_is_refused(tmp_path: Path) -> None:
    """A model whose attention does not come to us is refused by its name, not served wrongly."""
    folder = make_tiny_model(tmp_path / "llama")
    model, _ = load_model(folder, torch.float32, CPU, "sdpa")

    with pytest.raises(NotImplementedError, match="LlamaForCausalLM cannot be served: 0 of its 2 layers"):
        probe_layer_shapes(model, CPU)


def test_unknown_arguments_are_refused(tmp_path: Path) -> None:
    """A model that asks for attention sinks, which paged attention would leave out, is refused."""
    register_attention()
    folder = make_tiny_model(tmp_path / "gpt_oss", architecture="gpt_oss", num_local_experts=2, num_experts_per_tok=1)
    model, _ = load_model(folder, torch.float32, CPU, ATTENTION_NAME)

    with pytest.raises(NotImplementedError, match=r"GptOssForCausalLM cannot be served: .*s_aux"):
        probe_layer_shapes(model, CPU)


@pytest.mark.parametrize(
    ("architecture", "settings"),
    [("llama", {}), ("mistral", {"sliding_window": 6}), ("gemma2", {"attn_logit_softcapping": 5.0})],
)
def test_nothing_that_was_left_in_a_page_is_seen(
    tiny_engine: Any, tmp_path: Path, reference: Any, architecture: str, settings: dict[str, Any]
) -> None:
    """Over pages full of NaN, as a tenant could leave them, everybody's tokens are transformers' own."""
    folder = make_tiny_model(tmp_path / architecture, architecture=architecture, **settings)
    options = {"runner": "transformers", "page_size": 4, "max_batch_tokens": 13, "kv_pages": 40, "prefix_cache": False}
    driver = tiny_engine(folder, **options)
    kv_cache = driver.core._stepper._runner._kv_cache
    prompts = [[5 + (7 * i + k) % 400 for i in range(length)] for k, length in enumerate((1, 12, 21))]
    for tensor in (*kv_cache.keys, *kv_cache.values):
        tensor.fill_(float("nan"))
    generations = []
    for prompt in prompts:
        context = driver.create(driver.open_run(), prompt)
        fork = driver.fork(context, len(prompt))
        generations += [(prompt, driver.generate(c, max_tokens=9)) for c in (context, fork)]
    driver.settle()

    for prompt, generation in generations:
        assert driver.tokens(generation) == reference(prompt, 9, folder)
