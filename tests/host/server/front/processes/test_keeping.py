from __future__ import annotations

import asyncio

import pytest

from tartlet.server.front.processes.backoff import Backoff
from tartlet.server.front.processes.keeping import keep_going


async def test_one_life_follows_another(caplog: pytest.LogCaptureFixture) -> None:
    """However each ends, the log says so."""
    lives = asyncio.Event()
    ends = iter(["was ended by SIGKILL", OSError("no more processes"), ValueError("a fault")])

    async def live() -> str:
        end = next(ends, None)
        if end is None:
            lives.set()
            await asyncio.Event().wait()
        if isinstance(end, Exception):
            raise end
        return str(end)

    keeping = asyncio.create_task(keep_going("worker 1", live, Backoff(first_s=0.001)))
    await asyncio.wait_for(lives.wait(), 10)
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping

    told = [record.getMessage().splitlines()[0] for record in caplog.records if record.levelname == "ERROR"]
    assert told == [
        "worker 1 was ended by SIGKILL",
        "worker 1 cannot be started: OSError: no more processes",
        "worker 1 cannot be started: ValueError: a fault",
    ]
