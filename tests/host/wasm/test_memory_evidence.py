"""Evidence that a guest's memory was full."""

from __future__ import annotations

import mmap

from tartlet.wasm.memory_evidence import guest_bytes, writable_bytes
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


def test_a_guest_had_what_was_freed_besides_the_stack() -> None:
    """What its store gave back, less its fiber's stack, and never less than nothing."""
    assert guest_bytes(1000 + ASYNC_STACK_BYTES, 400) == 600
    assert guest_bytes(1000, 1000) == 0


def test_a_system_that_does_not_tell_is_no_evidence() -> None:
    """Where the process's memory cannot be read, nothing is known."""
    assert guest_bytes(0, 0) is None
