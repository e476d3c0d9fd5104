"""Evidence of how much memory a guest that trapped had.

Wasmtime's C API does not tell that it refused to let a memory grow, nor how large a memory is. But freeing the store
gives the memory back, and the process's count of writable bytes shows by how much.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from tartlet.wasm.wasm_engine import ASYNC_STACK_BYTES

_STATM = Path("/proc/self/statm")
_DATA_FIELD = 5


def writable_bytes() -> int:
    """Private writable memory of the process, touched or not; 0 where the system does not tell. Cost: some 20 us."""
    try:
        return int(_STATM.read_text().split()[_DATA_FIELD]) * mmap.PAGESIZE
    except OSError:
        return 0


def guest_bytes(before: int, after: int) -> int | None:
    """About how much memory a store had, given `writable_bytes` before and after it was freed; None if not known.

    The fiber's stack came on top.
    """
    return max(0, before - after - ASYNC_STACK_BYTES) if before else None
