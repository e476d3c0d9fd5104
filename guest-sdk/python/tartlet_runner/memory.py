"""Arranges the memory of the snapshot so that a run writes to few pages: each is copied at the first write to it."""

from __future__ import annotations

import gc

LARGEST_HOLE = 256 * 1024  # bytes
SMALLEST_HOLE = 32
BYTES_OVERHEAD = 21  # of a bytes object: 17 of its own and 4 of the allocator

_fillings: list[bytes | None] = [None] * 100_000


def settle() -> None:
    """Collect garbage, fill the holes that it leaves, and hide what there is from the garbage collector.

    The first collection of a run would otherwise write to every page: 19 MB instead of 3.
    """
    gc.collect()
    fill_holes()
    gc.freeze()


def fill_holes() -> int:
    """Allocate all free memory that lies between objects, for good; the number of bytes.

    What a run allocates then lies side by side at the end of the memory, instead of all over it: a third of the pages
    to compile a program. The holes are filled from the largest size to the smallest, each until the allocator has to
    give fresh memory, which lies above all objects.
    """
    top = id(bytes(1 << 20))
    count = filled = 0
    sizes = [1 << power for power in range(LARGEST_HOLE.bit_length() - 1, 9, -1)]
    for size in [*sizes, *range(512, SMALLEST_HOLE - 1, -16)]:
        while id(block := bytes(size - BYTES_OVERHEAD)) < top and count < len(_fillings):
            _fillings[count] = block
            count += 1
            filled += size
    return filled
