"""wasi:io/poll: waiting. Every pollable is a point in time; streams are always ready."""

from __future__ import annotations

import time
from typing import Any

from tartlet.errors import GuestTrapError
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import Interfaces
from tartlet.wasm.wasi.state import wasi_state


def _ready(fiber: Fiber, pollable: int) -> bool:
    return wasi_state(fiber).deadlines[pollable] <= time.monotonic_ns()


def _block(fiber: Fiber, pollable: int) -> Any:
    """Sleep without holding the thread."""
    if _ready(fiber, pollable):
        return None
    return fiber.suspend_until(wasi_state(fiber).deadlines[pollable], lambda: None)


def _poll(fiber: Fiber, pollables: list[int]) -> Any:
    """Wait for the first of several, and return the positions of those that are ready.

    Wasmtime 50.0 traps before this is called with more than one: two borrows in one call.
    """
    if not pollables:
        raise GuestTrapError("the program polls an empty list")
    deadlines = [wasi_state(fiber).deadlines[pollable] for pollable in pollables]

    def positions() -> list[int]:
        now_ns = time.monotonic_ns()
        return [i for i, deadline_ns in enumerate(deadlines) if deadline_ns <= now_ns]

    return positions() or fiber.suspend_until(min(deadlines), positions)


def _drop_pollable(fiber: Fiber, pollable: int) -> None:
    wasi_state(fiber).deadlines.pop(pollable, None)


INTERFACES: Interfaces = {
    "wasi:io/poll": {
        "pollable": _drop_pollable,
        "[method]pollable.ready": _ready,
        "[method]pollable.block": _block,
        "poll": _poll,
    }
}
