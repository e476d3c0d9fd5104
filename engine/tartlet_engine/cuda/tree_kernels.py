# Triton gives `jit` no types that mypy could see through.
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
"""The Triton kernel of attention for rows of a tree, each by itself: none reads what it does not see.

A tree's rows are few, and their siblings' keys and values may hold anything. So a program takes one row, as in decode,
and loads only the slots that this row sees.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tartlet_engine.cuda.paged_kernels import _attend


@triton.jit(do_not_specialize=["table_stride", "num_tail"])
def tree_kernel(
    queries,  # [H, T, key_dim], strides as given, dense in the last
    key_cache,
    value_cache,
    tables,  # int64[S, P]
    tree_rows,  # int64[N, 4]: row of the step, number of its table, first slot of the tail, slots of its sequence
    begins,  # int64[N]: the first slot that the row sees
    visible,  # uint8[N, num_tail]: whether it sees this slot of the tail
    results,  # [T, H, value_dim]
    query_head_stride,
    query_row_stride,
    table_stride,
    num_tail,
    num_kv_heads,
    scaling,
    heads_per_kv: tl.constexpr,
    softcap: tl.constexpr,
    page_size: tl.constexpr,
    key_dim: tl.constexpr,
    value_dim: tl.constexpr,
    key_block: tl.constexpr,
    value_block: tl.constexpr,
    block_rows: tl.constexpr,  # heads_per_kv, rounded up
    block_slots: tl.constexpr,
):
    """Attend with one row of a tree, for the query heads of one KV head. Grid: N, K."""
    number = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1).to(tl.int64)
    row = tl.load(tree_rows + number * 4)
    table = tl.load(tree_rows + number * 4 + 1)
    tail_first = tl.load(tree_rows + number * 4 + 2)
    end = tl.load(tree_rows + number * 4 + 3)
    begin = tl.load(begins + number)
    heads = tl.arange(0, block_rows)
    is_head = heads < heads_per_kv
    query_heads = kv_head * heads_per_kv + heads
    dims = tl.arange(0, key_block)
    query = tl.load(
        queries + query_heads[:, None] * query_head_stride + row * query_row_stride + dims[None, :],
        mask=is_head[:, None] & (dims < key_dim)[None, :],
        other=0.0,
    )
    result, total, _ = _attend(
        query,
        tl.zeros([block_rows], tl.int64) + (end - 1),
        begin // block_slots * block_slots,
        end,
        tables + table * table_stride,
        key_cache,
        value_cache,
        kv_head,
        num_kv_heads,
        scaling,
        softcap,
        None,
        page_size,
        key_dim,
        value_dim,
        key_block,
        value_block,
        block_rows,
        block_slots,
        begin,
        tail_first,
        visible + number * num_tail,
        True,
    )
    result = result / total[:, None]
    dims = tl.arange(0, value_block)
    places = row * num_kv_heads * heads_per_kv + query_heads
    tl.store(
        results + places[:, None] * value_dim + dims[None, :],
        result.to(results.dtype.element_ty),
        mask=is_head[:, None] & (dims < value_dim)[None, :],
    )
