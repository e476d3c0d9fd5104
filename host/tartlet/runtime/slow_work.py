"""Work that blocks, for asyncio programs that may give up waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_to_its_end(work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """Do slow work on another thread. If the wait for it is cancelled, it is undone when it is done."""
    task = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:

        def undo_result(done: asyncio.Task[T]) -> None:
            if not done.cancelled() and done.exception() is None:
                undo(done.result())

        task.add_done_callback(undo_result)
        raise
