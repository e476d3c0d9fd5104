from __future__ import annotations

import asyncio
import time

import pytest

from tartlet.server.front import loop_lag
from tartlet.server.front.loop_lag import LoopLag


async def test_what_holds_up_the_loop_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest delay, once."""
    monkeypatch.setattr(loop_lag, "PERIOD_S", 0.001)
    lag = LoopLag()
    measuring = asyncio.create_task(lag.measure())
    await asyncio.sleep(0)
    time.sleep(0.05)
    while not lag.take_max() > 0.02:
        await asyncio.sleep(0)
    measuring.cancel()
    await asyncio.gather(measuring, return_exceptions=True)

    assert lag.take_max() < 0.02
