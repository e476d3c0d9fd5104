"""wasi:clocks: the time, and pollables for points in time."""

from __future__ import annotations

import time

from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import Interfaces
from tartlet.wasm.wasi.state import new_pollable

_NS_PER_SECOND = 1_000_000_000


def interfaces(resolution_ns: int) -> Interfaces:
    """Make the clocks, rounded down to a resolution."""

    def monotonic_now(_fiber: Fiber) -> int:
        now_ns = time.monotonic_ns()
        return now_ns - now_ns % resolution_ns

    def monotonic_resolution(_fiber: Fiber) -> int:
        return resolution_ns

    def wall_now(_fiber: Fiber) -> dict[str, int]:
        now_ns = time.time_ns()
        return _datetime(now_ns - now_ns % resolution_ns)

    def wall_resolution(_fiber: Fiber) -> dict[str, int]:
        return _datetime(resolution_ns)

    return {
        "wasi:clocks/monotonic-clock": {
            "now": monotonic_now,
            "resolution": monotonic_resolution,
            "subscribe-instant": new_pollable,
            "subscribe-duration": _subscribe_duration,
        },
        "wasi:clocks/wall-clock": {"now": wall_now, "resolution": wall_resolution},
    }


def _subscribe_duration(fiber: Fiber, duration_ns: int) -> int:
    return new_pollable(fiber, time.monotonic_ns() + duration_ns)


def _datetime(ns: int) -> dict[str, int]:
    seconds, nanoseconds = divmod(ns, _NS_PER_SECOND)
    return {"seconds": seconds, "nanoseconds": nanoseconds}
