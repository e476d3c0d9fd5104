"""Large buffers: zeros, aligned, and handed out piece by piece."""

from __future__ import annotations

import pytest
import torch

from tartlet_engine.huge_memory import HUGE_PAGE_BYTES, Arena, huge_zeros


@pytest.mark.parametrize("num_bytes", [1, 64, HUGE_PAGE_BYTES, 5 * HUGE_PAGE_BYTES + 3])
def test_buffers_are_aligned_zeros(num_bytes: int) -> None:
    """They have the size asked for and can be written to the end."""
    buffer = huge_zeros(num_bytes)

    assert buffer.numel() == num_bytes
    assert buffer.data_ptr() % HUGE_PAGE_BYTES == 0
    assert int(buffer.sum()) == 0
    buffer.fill_(1)
    assert int(buffer.sum(dtype=torch.int64)) == num_bytes


def test_an_arena_keeps_its_pieces_apart() -> None:
    """Each keeps its content and stands on a cache line."""
    arena = Arena(64 * 6)
    pieces = [arena.hold(torch.full((64 * size,), size, dtype=torch.uint8)) for size in (1, 2, 3)]

    assert [piece.unique().tolist() for piece in pieces] == [[1], [2], [3]]
    assert all(piece.data_ptr() % 64 == 0 for piece in pieces)


def test_an_arena_that_is_too_small_says_so() -> None:
    """Nothing is written beyond its end."""
    with pytest.raises(AssertionError, match="too small"):
        Arena(64).hold(torch.zeros(128, dtype=torch.uint8))


def test_more_than_there_is() -> None:
    """The error says how much was asked for."""
    with pytest.raises(MemoryError, match=r"1,000,000,000\.0 GB"):
        huge_zeros(10**18)
