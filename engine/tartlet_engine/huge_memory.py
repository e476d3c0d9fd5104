"""Large buffers on huge pages of the system, which save the CPU much address translation."""

from __future__ import annotations

import contextlib
import mmap

import torch

HUGE_PAGE_BYTES = 2 << 20


def huge_zeros(num_bytes: int) -> torch.Tensor:
    """Return uint8[num_bytes] of zeros that begins on a huge page.

    Memory is taken from the system as it is first written, and given back when the tensor is freed.

    Raises:
        MemoryError: the system does not have that much.
    """
    try:
        # Private: a shared mapping, which is what Python makes by default, gets no huge pages.
        mapping = mmap.mmap(-1, num_bytes + HUGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"{num_bytes / 1e9:,.1f} GB of memory are not to be had: {error}") from error
    with contextlib.suppress(OSError, AttributeError):  # a system without huge pages has small ones
        mapping.madvise(mmap.MADV_HUGEPAGE)
    whole = torch.frombuffer(mapping, dtype=torch.uint8)
    start = -whole.data_ptr() % HUGE_PAGE_BYTES
    return whole[start : start + num_bytes]


class Arena:
    """One huge buffer that tensors are moved into, one behind the other."""

    def __init__(self, num_bytes: int) -> None:
        """Reserve address space; see `huge_zeros`."""
        self._buffer = huge_zeros(num_bytes)
        self._used = 0

    def hold(self, content: torch.Tensor) -> torch.Tensor:
        """Copy uint8[bytes], of which there are a multiple of 64, and return the copy."""
        start, self._used = self._used, self._used + content.numel()
        assert self._used <= self._buffer.numel(), "the arena was made too small"
        return self._buffer[start : self._used].copy_(content)
