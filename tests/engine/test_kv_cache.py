"""The KV cache's tensors."""

from __future__ import annotations

import pytest
import torch

from tartlet_engine.kv_cache import KvCache, LayerShape, default_num_pages, page_bytes
from tartlet_engine.page_table import PageCopy, SlotMoves

CPU = torch.device("cpu")
SHAPES = [LayerShape(2, 8, 4), LayerShape(1, 8, 8)]


def test_copies_read_before_they_write() -> None:
    """A page that is the source of one copy and the target of another gives its old contents."""
    cache = KvCache(SHAPES, 5, 3, torch.float32, CPU)
    for tensor in (*cache.keys, *cache.values):
        tensor[:] = torch.arange(5.0)[:, None, None, None]
    cache.copy_pages([PageCopy(0, 1), PageCopy(1, 2)])

    for tensor in (*cache.keys, *cache.values):
        assert tensor[:, 0, 0, 0].tolist() == [0, 0, 1, 3, 4]


def test_pages_are_read_and_written_back() -> None:
    """What was read can be put into other pages, in another order; nothing else changes; another shape is refused."""
    cache = KvCache(SHAPES, 5, 3, torch.bfloat16, CPU)
    for tensor in (*cache.keys, *cache.values):
        tensor[:] = torch.randn(tensor.shape)
    before = cache.read_pages(range(5))
    cache.write_pages([4, 0], cache.read_pages([1, 2]))

    assert before.shape == (5, page_bytes(SHAPES, 3, torch.bfloat16))
    assert torch.equal(cache.read_pages(range(5)), before[[2, 1, 2, 3, 1]])
    assert torch.equal(cache.keys[1][4], cache.keys[1][1])
    with pytest.raises(ValueError, match="uint8"):
        cache.write_pages([0], before)


def test_cleared_pages_hold_zeros() -> None:
    """All slots of all layers, whatever they held, and of no other page."""
    cache = KvCache(SHAPES, 5, 3, torch.float32, CPU)
    for tensor in (*cache.keys, *cache.values):
        tensor.fill_(float("nan"))
    cache.clear_pages(torch.tensor([3, 1]))
    cache.clear_pages(torch.tensor([], dtype=torch.int64))

    for tensor in (*cache.keys, *cache.values):
        assert (tensor == 0).flatten(1).all(dim=1).tolist() == [False, True, False, True, False]


def test_shapes_and_bytes() -> None:
    """Layers may differ; what has never been written holds zeros; a page's size counts all layers."""
    cache = KvCache(SHAPES, 5, 3, torch.bfloat16, CPU)

    assert [tuple(keys.shape) for keys in cache.keys] == [(5, 2, 3, 8), (5, 1, 3, 8)]
    assert [tuple(values.shape) for values in cache.values] == [(5, 2, 3, 4), (5, 1, 3, 8)]
    assert all(bool((tensor == 0).all()) for tensor in (*cache.keys, *cache.values))
    assert page_bytes(SHAPES, 3, torch.bfloat16) == 2 * 3 * (2 * 12 + 16)


def test_default_size_is_bounded_by_memory_and_by_use() -> None:
    """Small pages: as many as 64 full contexts need. Huge ones: what fits, at least one."""
    assert default_num_pages(1, 16, 100, CPU) == 64 * 7
    assert default_num_pages(1 << 60, 16, 100, CPU) == 1


def test_tokens_move_between_pages() -> None:
    """Keys and values of the tokens are in their new slots, in all layers, and the rest of those pages is zero."""
    cache = KvCache([LayerShape(2, 3, 5)] * 2, 4, 4, torch.float32, torch.device("cpu"))
    for tensor in (*cache.keys, *cache.values):
        tensor.copy_(torch.randn(tensor.shape))
    before = [tensor.clone() for tensor in (*cache.keys, *cache.values)]
    cache.move_slots(SlotMoves([0, 1, 1], [3, 0, 2], [1, 1, 2], [0, 1, 0]))

    for old, new in zip(before, (*cache.keys, *cache.values), strict=True):
        assert torch.equal(new[1, :, 0], old[0, :, 3])
        assert torch.equal(new[1, :, 1], old[1, :, 0])
        assert torch.equal(new[2, :, 0], old[1, :, 2])
        assert not new[1, :, 2:].any()
        assert not new[2, :, 1:].any()
        assert torch.equal(new[[0, 3]], old[[0, 3]])
