"""Evidence that a guest which trapped had run out of memory.

Wasmtime's C API does not tell that it refused to let a memory grow, nor how large a memory is. But freeing the store
gives the memory back, and the process's count of writable bytes shows by how much.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from tartlet.wasm.wasm_engine import ASYNC_STACK_BYTES

_STATM = Path("/proc/self/statm")
_DATA_FIELD = 5
_FULL = 7 / 8


def writable_bytes() -> int:
    """Private writable memory of the process, touched or not; 0 where the system does not tell. Cost: some 20 us."""
    try:
        return int(_STATM.read_text().split()[_DATA_FIELD]) * mmap.PAGESIZE
    except OSError:
        return 0


def is_memory_full(freed_bytes: int, limit_bytes: int) -> bool:
    """Whether a store that gave back so much had grown to about its limit. The fiber's stack comes on top."""
    return freed_bytes - ASYNC_STACK_BYTES >= _FULL * limit_bytes
