# Triton gives `jit` no types that mypy could see through.
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
"""Triton kernels of paged attention: write keys and values into pages, attend by decode rows, attend by prefill tiles.

A layer's cache is `[pages, K, page_size, dim]`, contiguous; pages may have any size. A slot of a sequence is a token's
place in its page table: slot `i` is offset `i % page_size` of page `table[i // page_size]`. A row sees its own slot and
those before it, or the last `window` of these. Scores are float32 and in powers of two (`exp2` is one instruction).

In what order a row's scores are added up depends on nothing but the number of slots that it sees, so a row's result is
the same bits whatever stands in the batch beside it.

Source: online softmax, Milakov and Gimelshein 2018; tiles of attention, Dao et al. 2022 (FlashAttention); splitting the
keys of a decode row and combining, Dao et al. 2023 (Flash-Decoding).
"""

from __future__ import annotations

import triton
import triton.language as tl

# Numbers that change from step to step are not specialised on: kernels would be compiled again while they serve.


@triton.jit
def write_kernel(
    keys,  # [K, T, key_dim], strides as given, dense in the last
    values,  # [K, T, value_dim]
    key_cache,
    value_cache,
    page_ids,  # int64[T]; negative: the row is padding and is not written
    offsets,  # int64[T]
    key_head_stride,
    key_row_stride,
    value_head_stride,
    value_row_stride,
    num_kv_heads,
    page_size: tl.constexpr,
    key_dim: tl.constexpr,
    value_dim: tl.constexpr,
    key_block: tl.constexpr,  # key_dim, rounded up to a power of two
    value_block: tl.constexpr,
):
    """Put one row's key and value of one head into its slot. Grid: T, K."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    page_id = tl.load(page_ids + row)
    if page_id >= 0:
        slot = (page_id * num_kv_heads + head) * page_size + tl.load(offsets + row)
        dims = tl.arange(0, key_block)
        key = tl.load(keys + head * key_head_stride + row * key_row_stride + dims, mask=dims < key_dim)
        tl.store(key_cache + slot * key_dim + dims, key, mask=dims < key_dim)
        dims = tl.arange(0, value_block)
        value = tl.load(values + head * value_head_stride + row * value_row_stride + dims, mask=dims < value_dim)
        tl.store(value_cache + slot * value_dim + dims, value, mask=dims < value_dim)


@triton.jit
def _attend(
    query,  # [M, key_block]
    positions,  # int64[M]: the slot of each row
    first,  # slots from here on are looked at: a multiple of block_slots
    end,  # up to here, exclusive
    table,  # pointer to the sequence's page ids, int64[P]
    key_cache,
    value_cache,
    kv_head,
    num_kv_heads,
    scaling,
    softcap: tl.constexpr,  # None: none
    window: tl.constexpr,  # None: none
    page_size: tl.constexpr,
    key_dim: tl.constexpr,
    value_dim: tl.constexpr,
    key_block: tl.constexpr,
    value_block: tl.constexpr,
    block_rows: tl.constexpr,
    block_slots: tl.constexpr,
    begin=0,  # of a tree's row: the first slot that it sees
    tail_first=0,  # of the slots from here on, it sees those whose byte in `visible` is not 0
    visible=None,  # pointer to uint8
    is_tree: tl.constexpr = False,  # then all M are heads of one row, and only what it sees is loaded
):
    """Attend to the slots `first <= slot < end`. Returns the weighted sum [M, value_block], total [M], maximum [M]."""
    log2_e: tl.constexpr = 1.4426950408889634
    key_dims = tl.arange(0, key_block)
    value_dims = tl.arange(0, value_block)
    greatest = tl.full([block_rows], float("-inf"), tl.float32)
    total = tl.zeros([block_rows], tl.float32)
    result = tl.zeros([block_rows, value_block], tl.float32)
    for start in range(first, end, block_slots):
        slots = start + tl.arange(0, block_slots)
        is_there = slots < end
        if is_tree:
            is_tail = slots >= tail_first
            byte = tl.load(visible + (slots - tail_first), mask=is_there & is_tail, other=1)
            is_there = is_there & (slots >= begin) & (byte != 0)
        page_ids = tl.load(table + slots // page_size, mask=is_there, other=0)
        places = (page_ids.to(tl.int64) * num_kv_heads + kv_head) * page_size + slots % page_size
        key = tl.load(
            key_cache + places[None, :] * key_dim + key_dims[:, None],
            mask=is_there[None, :] & (key_dims < key_dim)[:, None],
            other=0.0,
        )
        scores = tl.dot(query, key, input_precision="ieee") * scaling
        if softcap is not None:
            scores = softcap * (2.0 * tl.sigmoid(2.0 * scores / softcap) - 1.0)  # softcap * tanh(scores / softcap)
        is_seen = (slots[None, :] <= positions[:, None]) & is_there[None, :]
        if window is not None:
            is_seen = is_seen & (slots[None, :] > positions[:, None] - window)
        scores = tl.where(is_seen, scores * log2_e, float("-inf"))
        new_greatest = tl.maximum(greatest, tl.max(scores, 1))
        # A row that has seen nothing yet: minus infinity less minus infinity would be NaN.
        base = tl.where(new_greatest == float("-inf"), 0.0, new_greatest)
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(greatest - base)
        total = total * shrink + tl.sum(weights, 1)
        value = tl.load(
            value_cache + places[:, None] * value_dim + value_dims[None, :],
            mask=is_there[:, None] & (value_dims < value_dim)[None, :],
            other=0.0,
        )
        result = tl.dot(weights.to(value.dtype), value, result * shrink[:, None], input_precision="ieee")
        greatest = new_greatest
    return result, total, greatest


@triton.jit(do_not_specialize=["table_stride", "num_splits"])
def decode_kernel(
    queries,  # [H, T, key_dim], strides as given, dense in the last
    key_cache,
    value_cache,
    tables,  # int64[B, P]
    context_lens,  # int64[B], the row's own token included; 0: the row is padding
    results,  # [T, H, value_dim] of the queries' dtype, if num_splits is 1; else float32[B, H, num_splits, value_dim]
    log_sums,  # float32[B, H, num_splits], in powers of two; not touched if num_splits is 1
    query_head_stride,
    query_row_stride,
    table_stride,
    num_kv_heads,
    scaling,
    num_splits,
    is_split: tl.constexpr,  # num_splits > 1
    heads_per_kv: tl.constexpr,
    softcap: tl.constexpr,
    window: tl.constexpr,
    page_size: tl.constexpr,
    key_dim: tl.constexpr,
    value_dim: tl.constexpr,
    key_block: tl.constexpr,
    value_block: tl.constexpr,
    block_rows: tl.constexpr,  # heads_per_kv, rounded up
    block_slots: tl.constexpr,
    split_len: tl.constexpr,
):
    """Attend with one token to one split of its context, for the query heads of one KV head. Grid: B, K, num_splits."""
    row = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1).to(tl.int64)
    split = tl.program_id(2)
    context_len = tl.load(context_lens + row)
    first = split * split_len
    end = tl.minimum(first + split_len, context_len)
    if window is not None:
        first = tl.maximum(first, tl.maximum(context_len - window, 0) // block_slots * block_slots)
    # A split without slots is not read by `combine_kernel`. Without splits, a padding row gets zeros.
    if (not is_split) or first < end:
        heads = tl.arange(0, block_rows)
        is_head = heads < heads_per_kv
        query_heads = kv_head * heads_per_kv + heads
        dims = tl.arange(0, key_block)
        query = tl.load(
            queries + query_heads[:, None] * query_head_stride + row * query_row_stride + dims[None, :],
            mask=is_head[:, None] & (dims < key_dim)[None, :],
            other=0.0,
        )
        positions = tl.zeros([block_rows], tl.int64) + (context_len - 1)
        result, total, greatest = _attend(
            query,
            positions,
            first,
            end,
            tables + row * table_stride,
            key_cache,
            value_cache,
            kv_head,
            num_kv_heads,
            scaling,
            softcap,
            window,
            page_size,
            key_dim,
            value_dim,
            key_block,
            value_block,
            block_rows,
            block_slots,
        )
        result = result / tl.where(total > 0, total, 1.0)[:, None]
        places = row * num_kv_heads * heads_per_kv + query_heads
        if is_split:
            places = places * num_splits + split
            tl.store(log_sums + places, greatest + tl.log2(total), mask=is_head)
        value_dims = tl.arange(0, value_block)
        tl.store(
            results + places[:, None] * value_dim + value_dims[None, :],
            result.to(results.dtype.element_ty),
            mask=is_head[:, None] & (value_dims < value_dim)[None, :],
        )


@triton.jit(do_not_specialize=["num_splits"])
def combine_kernel(
    split_results,  # float32[B, H, num_splits, value_dim]
    log_sums,  # float32[B, H, num_splits]
    context_lens,  # int64[B]
    results,  # [T, H, value_dim]
    num_heads,
    num_splits,
    window: tl.constexpr,
    value_dim: tl.constexpr,
    value_block: tl.constexpr,
    block_splits: tl.constexpr,
    split_len: tl.constexpr,
):
    """Put the splits of one row and head together. Grid: B, H."""
    place = tl.program_id(0).to(tl.int64) * num_heads + tl.program_id(1)
    context_len = tl.load(context_lens + tl.program_id(0))
    first_split = 0
    if window is not None:
        first_split = tl.maximum(context_len - window, 0) // split_len
    end_split = (context_len + split_len - 1) // split_len
    dims = tl.arange(0, value_block)
    is_dim = dims < value_dim
    greatest = tl.full([], float("-inf"), tl.float32)
    total = tl.zeros([], tl.float32)
    result = tl.zeros([value_block], tl.float32)
    for start in range(first_split, end_split, block_splits):
        splits = start + tl.arange(0, block_splits)
        is_there = splits < end_split
        sums = tl.load(log_sums + place * num_splits + splits, mask=is_there, other=float("-inf"))
        parts = tl.load(
            split_results + (place * num_splits + splits)[:, None] * value_dim + dims[None, :],
            mask=is_there[:, None] & is_dim[None, :],
            other=0.0,
        )
        new_greatest = tl.maximum(greatest, tl.max(sums, 0))
        weights = tl.exp2(sums - new_greatest)
        shrink = tl.exp2(greatest - new_greatest)
        total = total * shrink + tl.sum(weights, 0)
        result = result * shrink + tl.sum(parts * weights[:, None], 0)
        greatest = new_greatest
    result = result / tl.where(total > 0, total, 1.0)
    tl.store(results + place * value_dim + dims, result.to(results.dtype.element_ty), mask=is_dim)


@triton.jit(do_not_specialize=["table_stride"])
def prefill_kernel(
    queries,  # [H, T, key_dim], strides as given, dense in the last
    key_cache,
    value_cache,
    tables,  # int64[S, P]
    segments,  # int64[S, 3]: first row, number of rows, slot of the first row
    results,  # [T, H, value_dim]
    query_head_stride,
    query_row_stride,
    table_stride,
    num_kv_heads,
    scaling,
    heads_per_kv: tl.constexpr,
    softcap: tl.constexpr,
    window: tl.constexpr,
    page_size: tl.constexpr,
    key_dim: tl.constexpr,
    value_dim: tl.constexpr,
    key_block: tl.constexpr,
    value_block: tl.constexpr,
    block_rows: tl.constexpr,  # rows of a tile: its tokens times heads_per_kv, rounded up
    block_slots: tl.constexpr,
):
    """Attend with a tile of consecutive tokens of one sequence, for the query heads of one KV head.

    Grid: tiles of the longest segment, S, K.
    """
    tile_tokens: tl.constexpr = block_rows // heads_per_kv
    segment = tl.program_id(1).to(tl.int64)
    kv_head = tl.program_id(2).to(tl.int64)
    tile_first = tl.program_id(0) * tile_tokens
    first_row = tl.load(segments + segment * 3)
    num_rows = tl.load(segments + segment * 3 + 1)
    segment_start = tl.load(segments + segment * 3 + 2)
    if tile_first < num_rows:
        lanes = tl.arange(0, block_rows)
        tokens = tile_first + lanes // heads_per_kv
        query_heads = kv_head * heads_per_kv + lanes % heads_per_kv
        is_row = (lanes < tile_tokens * heads_per_kv) & (tokens < num_rows)
        dims = tl.arange(0, key_block)
        query = tl.load(
            queries
            + (query_heads * query_head_stride + (first_row + tokens) * query_row_stride)[:, None]
            + dims[None, :],
            mask=is_row[:, None] & (dims < key_dim)[None, :],
            other=0.0,
        )
        end = segment_start + tl.minimum(tile_first + tile_tokens, num_rows)
        first = end * 0
        if window is not None:
            first = tl.maximum(segment_start + tile_first + 1 - window, 0) // block_slots * block_slots
        result, total, _ = _attend(
            query,
            segment_start + tokens,
            first,
            end,
            tables + segment * table_stride,
            key_cache,
            value_cache,
            kv_head,
            num_kv_heads,
            scaling,
            softcap,
            window,
            page_size,
            key_dim,
            value_dim,
            key_block,
            value_block,
            block_rows,
            block_slots,
        )
        result = result / tl.where(total > 0, total, 1.0)[:, None]
        places = (first_row + tokens) * num_kv_heads * heads_per_kv + query_heads
        dims = tl.arange(0, value_block)
        tl.store(
            results + places[:, None] * value_dim + dims[None, :],
            result.to(results.dtype.element_ty),
            mask=is_row[:, None] & (dims < value_dim)[None, :],
        )
