"""What WASI keeps for one fiber."""

from __future__ import annotations

import codecs
import itertools

from tartlet.errors import LimitExceededError
from tartlet.wasm.fiber import Fiber

STDIN, STDOUT, STDERR = 0, 1, 2


class WasiState:
    """The pollables that a fiber holds, and the unfinished characters of its output streams."""

    def __init__(self) -> None:
        self.deadlines: dict[int, int] = {}  # pollable -> monotonic ns at which it is ready
        self.next_pollable = itertools.count(1)
        # A write may end in the middle of a character.
        self.decoders = {stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in (STDOUT, STDERR)}


def wasi_state(fiber: Fiber) -> WasiState:
    """The fiber's WASI state; made when it is first needed."""
    if fiber.wasi is None:
        fiber.wasi = WasiState()
    state: WasiState = fiber.wasi
    return state


def new_pollable(fiber: Fiber, deadline_ns: int) -> int:
    """Make a pollable that is ready once the monotonic clock reaches the deadline."""
    state = wasi_state(fiber)
    allowed = fiber.limits.wasi_handles
    if allowed is not None and len(state.deadlines) >= allowed:
        raise LimitExceededError("handle_limit", limit="max_handles", used=len(state.deadlines) + 1, allowed=allowed)
    pollable = next(state.next_pollable)
    state.deadlines[pollable] = deadline_ns
    return pollable
