"""What WASI keeps for a fiber."""

from __future__ import annotations

import pytest

from tartlet.errors import LimitExceededError
from tartlet.wasm.fiber import Fiber, FiberLimits
from tartlet.wasm.wasi.state import new_pollable, wasi_state


def test_pollables_are_counted(fiber: Fiber) -> None:
    """Pollables are numbered, and as many can be held as allowed; dropping one makes room."""
    fiber.limits = FiberLimits(wasi_handles=2)
    first, second = new_pollable(fiber, 1), new_pollable(fiber, 2)
    with pytest.raises(LimitExceededError):
        new_pollable(fiber, 3)
    del wasi_state(fiber).deadlines[first]

    assert new_pollable(fiber, 3) not in (first, second)


def test_state_is_made_once(fiber: Fiber) -> None:
    """A fiber has one state."""
    assert wasi_state(fiber) is wasi_state(fiber)
