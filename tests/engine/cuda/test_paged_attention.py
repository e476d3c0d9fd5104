"""The Triton kernels against the reference in plain torch: whole steps, and what they must leave alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from tartlet_engine.attention import PagedAttentionStep
from tartlet_engine.batch import DecodeGroup, PrefillSegment, StepBatch
from tartlet_engine.cuda.device_step import DecodeRows, to_device
from tartlet_engine.cuda.paged_attention import SPLIT_LEN, TritonAttentionStep
from tartlet_engine.kv_cache import KvCache, LayerShape

CPU = torch.device("cpu")
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def make_case(
    decode_lens: Sequence[int],
    prefills: Sequence[tuple[int, int]],
    page_size: int,
    shape: LayerShape,
    dtype: torch.dtype,
    seed: int = 0,
) -> tuple[StepBatch, KvCache]:
    """A step over scattered pages that hold random keys and values; `prefills` are (slots before, tokens)."""
    torch.manual_seed(seed)
    contexts = [(length - 1, 1) for length in decode_lens] + list(prefills)
    sizes = [-(-(start + count) // page_size) for start, count in contexts]
    pages = torch.randperm(sum(sizes) + 2)
    tables = list(pages[: sum(sizes)].split(sizes))
    cache = KvCache([shape], len(pages), page_size, dtype, CPU)
    for tensor in (*cache.keys, *cache.values):
        tensor.copy_(torch.randn(tensor.shape))
    positions = [start + i for start, count in contexts for i in range(count)]
    owners = [number for number, (_, count) in enumerate(contexts) for _ in range(count)]
    rows = list(zip(owners, positions, strict=True))
    width = max(sizes[: len(decode_lens)], default=0)
    padded = [torch.cat([table, table[:1].expand(width - len(table))]) for table in tables[: len(decode_lens)]]
    segments, first_row = [], len(decode_lens)
    for (start, count), table in zip(prefills, tables[len(decode_lens) :], strict=True):
        segments.append(PrefillSegment(first_row, count, start, table))
        first_row += count
    groups = (DecodeGroup(0, torch.stack(padded), torch.tensor(decode_lens)),) if decode_lens else ()
    none = torch.zeros(0, dtype=torch.int64)
    batch = StepBatch(
        token_ids=torch.zeros(len(rows), dtype=torch.int64),
        positions=torch.tensor(positions),
        page_ids=torch.stack([tables[owner][position // page_size] for owner, position in rows]),
        offsets=torch.tensor(positions) % page_size,
        logit_rows=none,
        decode_groups=groups,
        prefill_segments=tuple(segments),
    )
    return batch, cache


def copy_of(cache: KvCache, shape: LayerShape, device: torch.device) -> KvCache:
    copy = KvCache([shape], cache.num_pages, cache.page_size, cache.keys[0].dtype, device)
    copy.keys[0].copy_(cache.keys[0])
    copy.values[0].copy_(cache.values[0])
    return copy


def random_rows(num_heads: int, batch: StepBatch, shape: LayerShape, dtype: torch.dtype) -> list[torch.Tensor]:
    """Query, key and value as transformers' modules give them: [heads, T, dim], a view with the rows outside."""
    num_rows = len(batch.positions)
    sizes = ((num_heads, shape.key_dim), (shape.num_kv_heads, shape.key_dim), (shape.num_kv_heads, shape.value_dim))
    return [torch.randn(num_rows, heads, dim).to(dtype).transpose(0, 1) for heads, dim in sizes]


def compare(
    batch: StepBatch,
    cache: KvCache,
    shape: LayerShape,
    num_heads: int,
    device: torch.device,
    window: int | None = None,
    softcap: float | None = None,
) -> None:
    """Attend with the kernels and with the reference in float32, and compare outputs and caches."""
    dtype = cache.keys[0].dtype
    rows = random_rows(num_heads, batch, shape, dtype)
    ours = copy_of(cache, shape, device)
    scaling = shape.key_dim**-0.5
    step = TritonAttentionStep(to_device(batch, device), ours)
    output = step.attend(0, *[row.to(device) for row in rows], scaling, window, softcap)
    wide = KvCache([shape], cache.num_pages, cache.page_size, torch.float32, CPU)
    wide.keys[0].copy_(cache.keys[0])
    wide.values[0].copy_(cache.values[0])
    expected = PagedAttentionStep(batch, wide).attend(0, *[row.float() for row in rows], scaling, window, softcap)

    torch.testing.assert_close(output.float().cpu(), expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    assert torch.equal(ours.keys[0].float().cpu(), wide.keys[0])
    assert torch.equal(ours.values[0].float().cpu(), wide.values[0])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(4, 4), (6, 2), (7, 1)])
def test_mixed_step_equals_the_reference(
    dtype: torch.dtype, num_heads: int, num_kv_heads: int, device: torch.device
) -> None:
    """Decodes at page boundaries, a fresh and a continued prefill in one step, with grouped heads, in every dtype."""
    shape = LayerShape(num_kv_heads, 16, 16)
    batch, cache = make_case([1, 3, 4, 5, 8], [(0, 7), (5, 9), (4, 4)], 4, shape, dtype)
    compare(batch, cache, shape, num_heads, device)


@pytest.mark.parametrize("window", [None, 1, 5, 100, SPLIT_LEN, SPLIT_LEN + 3])
@pytest.mark.parametrize("softcap", [None, 0.7])
def test_windows_and_soft_caps(window: int | None, softcap: float | None, device: torch.device) -> None:
    """Sliding windows shorter and longer than tiles, splits and contexts, with and without a soft cap."""
    shape = LayerShape(1, 16, 16)
    batch, cache = make_case([2, 70, 2 * SPLIT_LEN + 9], [(0, 20), (90, 3)], 16, shape, torch.float32)
    compare(batch, cache, shape, 2, device, window, softcap)


@given(
    page_size=st.sampled_from([1, 3, 4, 16, 24, 64, 200]),
    decode_lens=st.lists(st.sampled_from([1, 2, 63, 64, 65, SPLIT_LEN, SPLIT_LEN + 1, 600]), max_size=3),
    prefills=st.lists(st.tuples(st.sampled_from([0, 1, 63, 130]), st.sampled_from([2, 17, 65])), max_size=2),
    dims=st.sampled_from([(8, 8), (16, 32), (20, 12)]),
)
@settings(max_examples=12)
def test_any_pages_and_lengths(
    page_size: int,
    decode_lens: list[int],
    prefills: list[tuple[int, int]],
    dims: tuple[int, int],
    device: torch.device,
) -> None:
    """Pages of any size, contexts at the borders of tiles and splits, keys and values of different, odd sizes."""
    if not decode_lens and not prefills:
        decode_lens = [7]
    shape = LayerShape(2, *dims)
    batch, cache = make_case(decode_lens, prefills, page_size, shape, torch.float32)
    compare(batch, cache, shape, 4, device)


def test_a_row_is_the_same_in_any_batch(device: torch.device) -> None:
    """A decode row's bits depend neither on its neighbours nor on the splits that these need."""
    shape = LayerShape(2, 16, 16)
    batch, cache = make_case([40, SPLIT_LEN, 3 * SPLIT_LEN + 1], [], 16, shape, torch.bfloat16)
    rows = random_rows(4, batch, shape, torch.bfloat16)
    step = to_device(batch, device)
    together = TritonAttentionStep(step, copy_of(cache, shape, device)).attend(0, *rows, 0.25, None, None)
    assert step.decode is not None
    for index in range(3):
        one = slice(index, index + 1)
        context_len = int(step.decode.context_lens[index])
        alone = replace(
            step,
            token_ids=step.token_ids[one],
            page_ids=step.page_ids[one],
            offsets=step.offsets[one],
            decode=DecodeRows(step.decode.tables[one], step.decode.context_lens[one], context_len),
        )
        attention = TritonAttentionStep(alone, copy_of(cache, shape, device))
        output = attention.attend(0, *[row[:, one] for row in rows], 0.25, None, None)
        assert torch.equal(output[0], together[index])


@pytest.mark.parametrize("context_len", [30, SPLIT_LEN + 30])
def test_padding_rows_write_and_read_nothing(context_len: int, device: torch.device) -> None:
    """A row with a negative page and no context leaves the cache alone; its neighbours get what they get without it."""
    shape = LayerShape(1, 16, 16)
    batch, cache = make_case([context_len, 5], [], 16, shape, torch.float32)
    rows = random_rows(2, batch, shape, torch.float32)
    step = to_device(batch, device)
    assert step.decode is not None
    unpadded = copy_of(cache, shape, device)
    expected = TritonAttentionStep(step, unpadded).attend(0, *rows, 0.25, None, None)
    before = copy_of(cache, shape, device)
    page_ids, context_lens = step.page_ids.clone(), step.decode.context_lens.clone()
    page_ids[1], context_lens[1] = -1, 0
    padded = replace(step, page_ids=page_ids, decode=replace(step.decode, context_lens=context_lens))
    output = TritonAttentionStep(padded, before).attend(0, *rows, 0.25, None, None)

    assert torch.equal(output[0], expected[0])
    assert bool(output[1].isfinite().all())
    written = batch.page_ids[1], 0, batch.offsets[1]
    assert not torch.equal(before.keys[0][written], unpadded.keys[0][written])
    before.keys[0][written], before.values[0][written] = unpadded.keys[0][written], unpadded.values[0][written]
    assert torch.equal(before.keys[0], unpadded.keys[0])
    assert torch.equal(before.values[0], unpadded.values[0])


def test_what_others_left_in_pages_does_not_matter(device: torch.device) -> None:
    """Slots that a sequence has not written may hold NaN, also in its own last page: no kernel reads them."""
    shape = LayerShape(1, 16, 16)
    batch, cache = make_case([5, SPLIT_LEN + 3], [(0, 6), (9, 4)], 8, shape, torch.float32)
    owned = torch.zeros(cache.num_pages, cache.page_size, dtype=torch.bool)
    (group,) = batch.decode_groups
    contexts = list(zip(group.page_tables, group.context_lens.tolist(), strict=True))
    contexts += [(segment.page_table, segment.context_len) for segment in batch.prefill_segments]
    for table, length in contexts:
        slots = torch.arange(length)
        owned[table[slots // cache.page_size], slots % cache.page_size] = True
    ours = copy_of(cache, shape, device)
    for tensor in (*ours.keys, *ours.values):
        tensor.transpose(1, 2)[~owned] = float("nan")
    rows = random_rows(2, batch, shape, torch.float32)
    expected = PagedAttentionStep(batch, cache).attend(0, *rows, 0.25, None, None)
    output = TritonAttentionStep(to_device(batch, device), ours).attend(0, *rows, 0.25, None, None)

    torch.testing.assert_close(output.cpu(), expected, atol=2e-5, rtol=2e-5)
