"""Paged attention against transformers' own, for every kind of attention that the tiny models have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tartlet_engine.attention import PagedAttentionStep, ShapeProbe
from tartlet_engine.batch import DecodeGroup, PrefillSegment, StepBatch, TreeMask
from tartlet_engine.kv_cache import KvCache, LayerShape
from tartlet_engine.tiny import make_tiny_model

CPU = torch.device("cpu")

ARCHITECTURES = {
    "llama": {},
    "llama-one-kv-head": {"num_kv_heads": 1},
    "llama-no-groups": {"num_kv_heads": 4},
    "qwen2": {},
    "qwen3": {},
    "mistral": {"sliding_window": 9},
    "gemma": {},
    "gemma2": {"sliding_window": 7, "attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 16},
    "gpt2": {},
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architectures_give_transformers_tokens(
    name: str, tiny_engine: Any, reference: Callable[..., list[int]], tmp_path: Path
) -> None:
    """Greedy tokens equal transformers' with grouped heads, sliding windows, soft caps and learnt positions."""
    architecture = name.split("-")[0]
    folder = make_tiny_model(tmp_path / name, architecture=architecture, context_len=128, **ARCHITECTURES[name])
    driver = tiny_engine(folder, max_batch_tokens=13, page_size=4)
    run_id = driver.open_run()
    prompts = [[5 + (7 * i + k) % 400 for i in range(length)] for k, length in enumerate((1, 12, 30))]
    generations = [driver.generate(driver.create(run_id, prompt), max_tokens=16) for prompt in prompts]
    driver.settle()

    for prompt, generation in zip(prompts, generations, strict=True):
        assert driver.tokens(generation) == reference(prompt, 16, folder)


def dense(
    query: torch.Tensor,  # [H, D] of the token at `position`
    keys: torch.Tensor,  # [C, K, D]
    values: torch.Tensor,
    position: int,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> torch.Tensor:
    """Attention written out for one query token, as the definition says."""
    first = 0 if window is None else max(0, position + 1 - window)
    groups = query.shape[0] // keys.shape[1]
    rows = []
    for head, head_query in enumerate(query):
        scores = keys[first : position + 1, head // groups] @ head_query * scaling
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        rows.append(scores.softmax(0) @ values[first : position + 1, head // groups])
    return torch.stack(rows)


@pytest.mark.parametrize("window", [None, 3, 50])
@pytest.mark.parametrize("softcap", [None, 0.7])
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(4, 4), (6, 2), (3, 1)])
def test_mixed_step_equals_the_definition(
    window: int | None, softcap: float | None, num_heads: int, num_kv_heads: int
) -> None:
    """Decodes of several lengths, a fresh and a continued prefill in one step, over scattered pages."""
    torch.manual_seed(1)
    page_size, dim = 4, 8
    cache = KvCache([LayerShape(num_kv_heads, dim, dim)], 40, page_size, torch.float32, CPU)
    # (tokens in the cache, tokens in this step) of each sequence
    sizes = [(2, 1), (7, 1), (8, 1), (0, 6), (5, 9)]
    free_pages = torch.randperm(40).tolist()
    tables, contexts, slots = [], [], []
    for cached, new in sizes:
        table = [free_pages.pop() for _ in range(-(-(cached + new) // page_size))]
        keys, values = torch.randn(2, cached + new, num_kv_heads, dim)
        for position in range(cached):
            page, offset = table[position // page_size], position % page_size
            cache.keys[0][page, :, offset], cache.values[0][page, :, offset] = keys[position], values[position]
        slots += [(table[position // page_size], position % page_size) for position in range(cached, cached + new)]
        tables.append(table)
        contexts.append((keys, values))
    padded = [table + [table[0]] * (3 - len(table)) for table in tables[:3]]
    num_tokens = len(slots)
    unused = torch.zeros(0, dtype=torch.int64)
    batch = StepBatch(
        token_ids=unused,
        positions=unused,
        page_ids=torch.tensor([page for page, _ in slots]),
        offsets=torch.tensor([offset for _, offset in slots]),
        logit_rows=unused,
        decode_groups=(DecodeGroup(0, torch.tensor(padded), torch.tensor([3, 8, 9])),),
        prefill_segments=(
            PrefillSegment(3, 6, 0, torch.tensor(tables[3])),
            PrefillSegment(9, 9, 5, torch.tensor(tables[4])),
        ),
    )
    query = torch.randn(num_heads, num_tokens, dim)
    key = torch.cat([keys[cached:] for (keys, _), (cached, _) in zip(contexts, sizes, strict=True)]).transpose(0, 1)
    value = torch.cat([vals[cached:] for (_, vals), (cached, _) in zip(contexts, sizes, strict=True)]).transpose(0, 1)
    output = PagedAttentionStep(batch, cache).attend(0, query, key, value, 0.4, window, softcap)

    row = 0
    for (keys, values), (cached, new) in zip(contexts, sizes, strict=True):
        for position in range(cached, cached + new):
            expected = dense(query[:, row], keys, values, position, 0.4, window, softcap)
            torch.testing.assert_close(output[row], expected, atol=1e-5, rtol=1e-5)
            row += 1
    assert row == num_tokens


@pytest.mark.parametrize("softcap", [None, 0.7])
@pytest.mark.parametrize("num_cached", [0, 6])
@pytest.mark.parametrize("window", [None, 1, 3])
def test_branches_do_not_see_each_other(softcap: float | None, num_cached: int, window: int | None) -> None:
    """A row of a tree attends as the last token of a line that holds what it follows, and nothing else."""
    torch.manual_seed(2)
    page_size, dim, parents = 4, 8, [-1, 0, 0, -1, 1, 3, 3]
    num_rows = len(parents)
    cache = KvCache([LayerShape(2, dim, dim)], 4, page_size, torch.float32, CPU)
    keys, values = torch.randn(2, num_cached + num_rows, 2, dim)
    for slot in range(num_cached):
        cache.keys[0][slot // page_size, :, slot % page_size] = keys[slot]
        cache.values[0][slot // page_size, :, slot % page_size] = values[slot]
    visible = torch.zeros(num_rows, num_rows, dtype=torch.bool)
    for row, parent in enumerate(parents):
        if parent >= 0:
            visible[row] = visible[parent]
        visible[row, row] = True
    slots = torch.arange(num_cached, num_cached + num_rows)
    unused = torch.zeros(0, dtype=torch.int64)
    tree = TreeMask(num_cached, visible)
    segment = PrefillSegment(0, num_rows, num_cached, torch.arange(4), tree)
    batch = StepBatch(unused, unused, slots // page_size, slots % page_size, unused, (), (segment,))
    query = torch.randn(6, num_rows, dim)
    key, value = keys[num_cached:].transpose(0, 1), values[num_cached:].transpose(0, 1)
    output = PagedAttentionStep(batch, cache).attend(0, query, key, value, 0.4, window, softcap)

    for row in range(num_rows):
        seen = [*range(num_cached), *(num_cached + index for index in range(num_rows) if visible[row, index])]
        expected = dense(query[:, row], keys[seen], values[seen], len(seen) - 1, 0.4, window, softcap)
        torch.testing.assert_close(output[row], expected, atol=1e-5, rtol=1e-5)


def test_what_no_branch_sees_may_be_no_number() -> None:
    """Slots of another branch, computed before, that no row of the segment sees, change nothing."""
    torch.manual_seed(3)
    visible = torch.tensor([[False, False, True, False], [False, False, True, True]])
    segment = PrefillSegment(0, 2, 5, torch.arange(2), TreeMask(3, visible))
    slots, unused = torch.tensor([5, 6]), torch.zeros(0, dtype=torch.int64)
    batch = StepBatch(unused, unused, slots // 4, slots % 4, unused, (), (segment,))
    rows = torch.randn(2, 2, 8), torch.randn(2, 2, 8), torch.randn(2, 2, 8)
    outputs = []
    for hidden in (1.0, float("nan")):
        cache = KvCache([LayerShape(2, 8, 8)], 2, 4, torch.float32, CPU)
        for tensor in (cache.keys[0], cache.values[0]):
            tensor.fill_(0.5)
            tensor[0, :, 3] = tensor[1, :, 0] = hidden
        outputs.append(PagedAttentionStep(batch, cache).attend(0, *rows, 0.4, None, None))

    assert torch.equal(*outputs)


def test_the_probe_notes_shapes() -> None:
    """The probe returns zeros of the right shape, and tells what the layer needs."""
    probe = ShapeProbe()
    output = probe.attend(2, torch.ones(6, 5, 8), torch.ones(2, 5, 8), torch.ones(2, 5, 4), 1.0, None, None)

    assert output.shape == (5, 6, 4)
    assert probe.layer_shapes == {2: LayerShape(2, 8, 4)}
