"""Work on texts, on a worker thread when the text is big."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tartlet.runtime.guest_state import GuestState
from tartlet.runtime.refusal import invalid_argument, refusing_value_errors

T = TypeVar("T")

MAX_INLINE_SIZE = 16 * 1024
"""Characters or tokens; up to here the work takes a few milliseconds at most, and is done at once."""
MAX_SIZE = 8 * 1024 * 1024
"""Characters or tokens; no context is that long."""


def process_text(run: GuestState, size: int, work: Callable[[], T], then: Callable[[T], object]) -> object:
    """Do `work` on `size` characters or tokens, here or on a worker thread, and return `then(its result)`.

    A `ValueError` of `work` becomes a refusal, and so does a size that is out of all proportion.
    """
    if size > MAX_SIZE:
        raise invalid_argument(f"{size:,} characters or tokens in one call; at most {MAX_SIZE:,} can be given")

    def careful_work() -> T:
        with refusing_value_errors():
            return work()

    if size <= MAX_INLINE_SIZE:
        return then(careful_work())
    return run.call_in_worker(careful_work, then)
