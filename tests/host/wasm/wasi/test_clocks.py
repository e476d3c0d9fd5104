"""wasi:clocks."""

from __future__ import annotations

import time

import pytest

from tartlet.wasm.fiber import Fiber
from tartlet.wasm.wasi import wasi_interfaces
from tartlet.wasm.wasi.state import wasi_state


@pytest.mark.parametrize("resolution_ns", [1, 1_000_000])
def test_clocks(fiber: Fiber, resolution_ns: int) -> None:
    """Clocks tell the host's time, rounded down to the resolution, and say what that is."""
    monotonic = wasi_interfaces(resolution_ns)["wasi:clocks/monotonic-clock"]
    wall = wasi_interfaces(resolution_ns)["wasi:clocks/wall-clock"]

    before, now, after = time.monotonic_ns(), monotonic["now"](fiber), time.monotonic_ns()
    assert before - resolution_ns < now <= after
    assert now % resolution_ns == 0
    assert monotonic["resolution"](fiber) == resolution_ns

    before, wall_now, after = time.time_ns(), wall["now"](fiber), time.time_ns()
    wall_ns = wall_now["seconds"] * 1_000_000_000 + wall_now["nanoseconds"]
    assert before - resolution_ns < wall_ns <= after
    assert wall_ns % resolution_ns == 0
    assert wall["resolution"](fiber) == {"seconds": 0, "nanoseconds": resolution_ns}


def test_pollables_of_the_clock(fiber: Fiber) -> None:
    """A duration is counted from now, an instant is one."""
    clock = wasi_interfaces()["wasi:clocks/monotonic-clock"]
    instant = clock["subscribe-instant"](fiber, 12345)
    before = time.monotonic_ns()
    duration = clock["subscribe-duration"](fiber, 500)

    deadlines = wasi_state(fiber).deadlines
    assert deadlines[instant] == 12345
    assert before + 500 <= deadlines[duration] <= time.monotonic_ns() + 500
