"""wasi:random: from the operating system."""

from __future__ import annotations

import os

from tartlet.errors import GuestTrapError
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import Interfaces

MAX_RANDOM_BYTES = 4096
"""What a guest may ask for at once."""


def _get_random_bytes(_fiber: Fiber, size: int) -> bytes:
    if size > MAX_RANDOM_BYTES:
        raise GuestTrapError(
            f"the program asked for {size:,} random bytes at once; {MAX_RANDOM_BYTES:,} are allowed",
            hint="Ask for them in pieces.",
        )
    return os.urandom(size)


def _get_random_u64(_fiber: Fiber) -> int:
    return int.from_bytes(os.urandom(8), "little")


INTERFACES: Interfaces = {
    "wasi:random/random": {"get-random-bytes": _get_random_bytes, "get-random-u64": _get_random_u64}
}
