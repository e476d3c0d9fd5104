"""Rows of a tree in Triton: the reference's results, whatever lies in slots that they do not see."""

from __future__ import annotations

import random

import pytest
import torch

pytest.importorskip("triton")

from tartlet_engine.attention import PagedAttentionStep
from tartlet_engine.batch import DecodeGroup, PrefillSegment, StepBatch, TreeMask
from tartlet_engine.cuda.device_step import to_device
from tartlet_engine.cuda.paged_attention import TritonAttentionStep
from tartlet_engine.kv_cache import KvCache, LayerShape

CPU = torch.device("cpu")
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def random_visible(num_before: int, num_rows: int, seed: int) -> torch.Tensor:
    """What the last rows of a random tree see of its nodes: bool[num_rows, num_before + num_rows]."""
    rng = random.Random(seed)
    size = num_before + num_rows
    visible = torch.eye(size, dtype=torch.bool)
    for row in range(1, size):
        if (parent := rng.randrange(-1, row)) >= 0:
            visible[row] |= visible[parent]
    return visible[num_before:].contiguous()


def make_batch(trees: list[tuple[int, int, int]], page_size: int) -> StepBatch:
    """A decode, a plain segment, and trees: (slots before the tree, nodes computed before, nodes)."""
    segments: list[PrefillSegment] = []
    next_page, first_row = 2, 1
    for number, (first_slot, num_before, num_rows) in enumerate([(5, 0, 4), *trees]):
        start = first_slot + num_before
        num_pages = -(-(start + num_rows) // page_size)
        table = torch.arange(next_page, next_page + num_pages).flip(0)
        tree = TreeMask(first_slot, random_visible(num_before, num_rows, number)) if number else None
        segments.append(PrefillSegment(first_row, num_rows, start, table, tree))
        next_page, first_row = next_page + num_pages, first_row + num_rows
    slots = [torch.tensor([page_size])] + [torch.arange(s.start, s.context_len) for s in segments]
    tables = [torch.arange(2), *(segment.page_table for segment in segments)]
    unused = torch.zeros(0, dtype=torch.int64)
    return StepBatch(
        token_ids=torch.zeros(first_row, dtype=torch.int64),
        positions=torch.cat(slots),
        page_ids=torch.cat([table[each // page_size] for table, each in zip(tables, slots, strict=True)]),
        offsets=torch.cat(slots) % page_size,
        logit_rows=unused,
        decode_groups=(DecodeGroup(0, tables[0][None], torch.tensor([page_size + 1])),),
        prefill_segments=tuple(segments),
    )


def make_caches(
    shape: LayerShape, batch: StepBatch, page_size: int, dtype: torch.dtype, device: torch.device
) -> tuple[KvCache, KvCache]:
    """The reference's cache in float32 and ours, full of the same random numbers."""
    num_pages = int(batch.page_ids.max()) + 1
    num_pages = max(num_pages, *(int(segment.page_table.max()) + 1 for segment in batch.prefill_segments))
    wide, ours = KvCache([shape], num_pages, page_size, torch.float32, CPU), None
    ours = KvCache([shape], num_pages, page_size, dtype, device)
    for theirs, own in zip((*wide.keys, *wide.values), (*ours.keys, *ours.values), strict=True):
        own.copy_(torch.randn(own.shape))
        theirs.copy_(own)
    return wide, ours


def random_rows(num_heads: int, num_rows: int, shape: LayerShape, dtype: torch.dtype) -> list[torch.Tensor]:
    sizes = ((num_heads, shape.key_dim), (shape.num_kv_heads, shape.key_dim), (shape.num_kv_heads, shape.value_dim))
    return [torch.randn(num_rows, heads, dim).to(dtype).transpose(0, 1) for heads, dim in sizes]


@pytest.mark.parametrize(
    ("dtype", "num_heads", "num_kv_heads", "window", "softcap"),
    [
        (torch.float32, 4, 4, None, None),
        (torch.float32, 6, 2, 1, 0.7),
        (torch.float32, 7, 1, 9, None),
        (torch.float16, 6, 2, 200, None),
        (torch.bfloat16, 7, 1, 9, 0.7),
    ],
)
def test_trees_equal_the_reference(
    dtype: torch.dtype,
    num_heads: int,
    num_kv_heads: int,
    window: int | None,
    softcap: float | None,
    device: torch.device,
) -> None:
    """Random trees at borders of pages and of tiles, whole and continued, beside rows without a tree."""
    torch.manual_seed(0)
    shape = LayerShape(num_kv_heads, 16, 16)
    for page_size, trees in [(4, [(0, 0, 7), (8, 3, 5)]), (24, [(63, 1, 9), (70, 0, 1)])]:
        batch = make_batch(trees, page_size)
        wide, ours = make_caches(shape, batch, page_size, dtype, device)
        rows = random_rows(num_heads, len(batch.positions), shape, dtype)
        expected = PagedAttentionStep(batch, wide).attend(0, *[row.float() for row in rows], 0.25, window, softcap)
        step = TritonAttentionStep(to_device(batch, device), ours)
        output = step.attend(0, *[row.to(device) for row in rows], 0.25, window, softcap)

        torch.testing.assert_close(output.float().cpu(), expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_rows_without_a_tree_do_not_change(device: torch.device) -> None:
    """Beside a tree, a decode and a plain segment have the bits that they have without one."""
    torch.manual_seed(1)
    shape = LayerShape(2, 16, 16)
    batch = make_batch([(9, 0, 6)], 8)
    (plain, _) = batch.prefill_segments
    alone = StepBatch(
        batch.token_ids[:5], batch.positions[:5], batch.page_ids[:5], batch.offsets[:5], batch.logit_rows,
        batch.decode_groups, (plain,),
    )  # fmt: skip
    rows = [row.to(device) for row in random_rows(4, len(batch.positions), shape, torch.float32)]
    _, ours = make_caches(shape, batch, 8, torch.float32, device)
    both = TritonAttentionStep(to_device(batch, device), ours).attend(0, *rows, 0.25, None, None)
    first = [row[:, :5] for row in rows]
    output = TritonAttentionStep(to_device(alone, device), ours).attend(0, *first, 0.25, None, None)

    assert torch.equal(both[:5], output)


def test_hidden_slots_may_be_no_number(device: torch.device) -> None:
    """NaN in a sibling's keys and values, computed in the same step or before, changes no bit of the others."""
    torch.manual_seed(2)
    shape = LayerShape(2, 16, 16)
    batch = make_batch([(6, 4, 5)], 8)
    segment = batch.prefill_segments[1]
    assert segment.tree is not None
    visible = segment.tree.visible
    rows = random_rows(4, len(batch.positions), shape, torch.float32)
    _, cache = make_caches(shape, batch, 8, torch.float32, device)

    def outputs(spoilt: int | None) -> torch.Tensor:
        ours = KvCache([shape], cache.num_pages, 8, torch.float32, device)
        ours.keys[0].copy_(cache.keys[0])
        ours.values[0].copy_(cache.values[0])
        query, key, value = (row.clone().to(device) for row in rows)
        if spoilt is not None and spoilt >= 4:
            key[:, segment.first_row + spoilt - 4] = value[:, segment.first_row + spoilt - 4] = float("nan")
        elif spoilt is not None:
            page, offset = segment.page_table[(6 + spoilt) // 8], (6 + spoilt) % 8
            ours.keys[0][page, :, offset] = ours.values[0][page, :, offset] = float("nan")
        step = TritonAttentionStep(to_device(batch, device), ours)
        return step.attend(0, query, key, value, 0.25, None, None)[segment.first_row :].cpu()

    clean = outputs(None)
    for slot in range(9):
        spoilt = outputs(slot)
        assert torch.equal(spoilt[~visible[:, slot]], clean[~visible[:, slot]])
        assert bool(spoilt[visible[:, slot]].isnan().all())
