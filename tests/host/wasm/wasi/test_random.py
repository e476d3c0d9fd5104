"""wasi:random."""

from __future__ import annotations

import pytest

from tartlet.errors import GuestTrapError
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.wasi import wasi_interfaces

RANDOM = wasi_interfaces()["wasi:random/random"]


def test_random_bytes(fiber: Fiber) -> None:
    """As many bytes as asked for, different each time."""
    get = RANDOM["get-random-bytes"]

    assert [len(get(fiber, size)) for size in (0, 1, 4096)] == [0, 1, 4096]
    assert get(fiber, 16) != get(fiber, 16)


def test_too_many_random_bytes(fiber: Fiber) -> None:
    """More than 4096 at once end the run, with the numbers."""
    with pytest.raises(GuestTrapError, match="asked for 4,097 random bytes at once; 4,096 are allowed"):
        RANDOM["get-random-bytes"](fiber, 4097)


def test_random_number(fiber: Fiber) -> None:
    """A number of 64 bits."""
    assert 0 <= RANDOM["get-random-u64"](fiber) < 2**64
