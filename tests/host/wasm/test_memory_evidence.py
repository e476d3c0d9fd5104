"""Evidence that a guest's memory was full."""

from __future__ import annotations

import mmap

from tartlet.wasm.memory_evidence import is_memory_full, writable_bytes
from tartlet.wasm.wasm_engine import ASYNC_STACK_BYTES

SIZE = 256 << 20


def test_writable_bytes_count_what_is_mapped() -> None:
    """Memory that is mapped for writing counts, touched or not, until it is unmapped."""
    before = writable_bytes()
    memory = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    during = writable_bytes()
    memory.close()

    assert during - before > SIZE / 2
    assert during - writable_bytes() > SIZE / 2


def test_full_is_about_the_limit_besides_the_stack() -> None:
    """A store is full if it gave back about its limit, and its fiber's stack."""
    assert is_memory_full(ASYNC_STACK_BYTES + 60, 64)
    assert not is_memory_full(ASYNC_STACK_BYTES + 50, 64)
    assert not is_memory_full(64, 64)
