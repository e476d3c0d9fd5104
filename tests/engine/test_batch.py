"""Batches: rows, slots and groups of a step."""

from __future__ import annotations

import torch

from tartlet_engine.accounts import RunAccount
from tartlet_engine.batch import build_batch, order_chunks
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_plan import Chunk

CPU = torch.device("cpu")


def make_chunk(pool: PagePool, length: int, start: int, num_tokens: int, adapter: str | None = None) -> Chunk:
    account = RunAccount(1, "local", None, None)
    sequence = Sequence(length, account, PageTable(pool, account), [1000 * length + i for i in range(length)])
    sequence.adapter = adapter
    sequence.page_table.reserve(0, start + num_tokens)
    return Chunk(sequence, start, num_tokens)


def test_rows_of_a_mixed_step() -> None:
    """Decodes come first by the length of their page tables, then prefills; unfinished prompts want no logits."""
    pool = PagePool(100, page_size=4)
    chunks = [
        make_chunk(pool, 9, 2, 3),
        make_chunk(pool, 6, 5, 1),
        make_chunk(pool, 7, 4, 3),
        make_chunk(pool, 3, 2, 1),
    ]
    ordered = order_chunks(chunks)
    batch = build_batch(ordered, [], 4, CPU)

    assert ordered == [chunks[3], chunks[1], chunks[0], chunks[2]]
    assert batch.token_ids.tolist() == [3002, 6005, 9002, 9003, 9004, 7004, 7005, 7006]
    assert batch.positions.tolist() == [2, 5, 2, 3, 4, 4, 5, 6]
    assert batch.logit_rows.tolist() == [0, 1, 7]
    expected = [
        chunk.sequence.page_table.page_ids[position // 4]
        for chunk in ordered
        for position in range(chunk.start, chunk.end)
    ]
    assert batch.page_ids.tolist() == expected
    assert batch.offsets.tolist() == [2, 1, 2, 3, 0, 0, 1, 2]
    (group,) = batch.decode_groups
    assert group.context_lens.tolist() == [3, 6]
    first_page = ordered[0].sequence.page_table.page_ids[0]
    assert group.page_tables.tolist() == [[first_page, first_page], ordered[1].sequence.page_table.page_ids]
    assert [(s.first_row, s.num_rows, s.start, len(s.page_table)) for s in batch.prefill_segments] == [
        (2, 3, 2, 2),
        (5, 3, 4, 2),
    ]


def test_a_token_that_is_not_known_yet() -> None:
    """A decode that is computed ahead has its place and wants logits; a zero stands for its token."""
    pool = PagePool(100, page_size=4)
    chunk = make_chunk(pool, 7, 7, 1)
    batch = build_batch([chunk], [], 4, CPU)

    assert batch.token_ids.tolist() == [0]
    assert batch.positions.tolist() == [7]
    assert batch.page_ids.tolist() == [chunk.sequence.page_table.page_ids[1]]
    assert batch.logit_rows.tolist() == [0]
    assert batch.decode_groups[0].context_lens.tolist() == [8]


def test_short_decodes_are_not_padded_to_a_long_one() -> None:
    """A row of 400 pages is not in one group with rows of a few, which are together."""
    pool = PagePool(2000, page_size=4)
    lengths = [5, 1600, 40, 900, 8]
    chunks = order_chunks([make_chunk(pool, length, length - 1, 1) for length in lengths])
    groups = build_batch(chunks, [], 4, CPU).decode_groups

    assert [group.context_lens.tolist() for group in groups] == [[5, 8, 40], [900, 1600]]
    assert [group.first_row for group in groups] == [0, 3]


def test_rows_with_one_adapter_are_neighbours() -> None:
    """Among the decodes and among the prefills; no group of decodes has two adapters, and those without come first."""
    pool = PagePool(100, page_size=4)
    shapes = [(9, 2, 3, "b"), (6, 5, 1, "a"), (7, 4, 3, None), (3, 2, 1, None), (5, 4, 1, "b"), (30, 29, 1, "a")]
    batch = build_batch(order_chunks([make_chunk(pool, *shape) for shape in shapes]), [], 4, CPU)

    assert batch.token_ids.tolist() == [3002, 6005, 30029, 5004, 7004, 7005, 7006, 9002, 9003, 9004]
    spans = [(span.adapter, span.first_row, span.num_rows) for span in batch.adapter_spans]
    assert spans == [("a", 1, 2), ("b", 3, 1), ("b", 7, 3)]
    assert [batch.token_ids[span.rows].tolist() for span in batch.adapter_spans][:2] == [[6005, 30029], [5004]]
    assert [group.context_lens.tolist() for group in batch.decode_groups] == [[3], [6, 30], [5]]
