import asyncio
import threading

import pytest

from tartlet.runtime.slow_work import run_to_its_end


async def test_the_result_of_work_elsewhere() -> None:
    """It is done on another thread, and what it returns or raises is what one gets."""
    assert await run_to_its_end(threading.get_ident, undo=print) != threading.get_ident()

    with pytest.raises(ZeroDivisionError):
        await run_to_its_end(lambda: 1 / 0, undo=print)


async def test_work_that_nobody_waits_for_is_undone() -> None:
    """If the wait is cancelled, the work goes on to its end, and its result is undone."""
    go_on = threading.Event()
    undone: asyncio.Queue[str] = asyncio.Queue()

    def work() -> str:
        go_on.wait()
        return "result"

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run_to_its_end(work, undone.put_nowait), 0.01)
    go_on.set()

    assert await undone.get() == "result"
