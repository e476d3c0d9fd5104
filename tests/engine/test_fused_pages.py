"""The fused runner's pages, token by token."""

from __future__ import annotations

import pytest
import torch

from tartlet_engine.fused_pages import PAGE_SIZE, FusedPages
from tartlet_engine.page_table import SlotMoves

LAYERS, PAGES, HEADS, DIM = 2, 3, 2, 32


def filled(is_float32: bool) -> torch.Tensor:
    """A pool in which every element tells its layer, page, head, kind, token and dimension, laid out as in heads.c."""
    pool = torch.zeros(LAYERS, PAGES, HEADS, 2, PAGE_SIZE * DIM, dtype=torch.int32 if is_float32 else torch.int16)
    for layer in range(LAYERS):
        for page in range(PAGES):
            for head in range(HEADS):
                for token in range(PAGE_SIZE):
                    for d in range(DIM):
                        number = (((layer * PAGES + page) * HEADS + head) * PAGE_SIZE + token) * DIM + d + 1
                        keys, values = pool[layer, page, head]
                        if is_float32:
                            keys[d * PAGE_SIZE + token] = values[token * DIM + d] = number
                        else:
                            keys[(d // 2 * PAGE_SIZE + token) * 2 + d % 2] = number
                            values[(token // 2 * DIM + d) * 2 + token % 2] = number
    return pool


@pytest.mark.parametrize("is_float32", [True, False])
def test_tokens_move_with_all_their_numbers(is_float32: bool) -> None:
    """Keys and values of each token are found in its new slot, the rest of that page is zero, others stay."""
    before, pool = filled(is_float32), filled(is_float32)
    moves = SlotMoves([0, 1, 1], [3, 8, 15], [1, 1, 1], [0, 1, 6])
    FusedPages(pool.view(torch.uint8).flatten(), LAYERS, PAGES, HEADS, is_float32=is_float32).move(moves)
    expected = before.clone()
    expected[:, 1] = 0
    for source, offset, _, target in zip(
        moves.source_page_ids, moves.source_offsets, moves.target_page_ids, moves.target_offsets, strict=True
    ):
        for d in range(DIM):
            if is_float32:
                places = [(0, d * PAGE_SIZE + offset, d * PAGE_SIZE + target), (1, offset * DIM + d, target * DIM + d)]
            else:
                pair = d // 2 * PAGE_SIZE
                places = [
                    (0, (pair + offset) * 2 + d % 2, (pair + target) * 2 + d % 2),
                    (1, (offset // 2 * DIM + d) * 2 + offset % 2, (target // 2 * DIM + d) * 2 + target % 2),
                ]
            for kind, old, new in places:
                expected[:, 1, :, kind, new] = before[:, source, :, kind, old]

    assert torch.equal(pool, expected)
