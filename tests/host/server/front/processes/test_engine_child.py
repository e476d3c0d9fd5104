from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from tartlet.errors import ConfigError, EngineStoppedError
from tartlet.server.engine.settings import FakeSettings
from tartlet.server.engine.socket_client import connect_engine
from tartlet.server.front.processes import engine_watch
from tartlet.server.front.processes.opening import open_processes
from tartlet_engine.api import OpenRun

pytestmark = pytest.mark.runner


async def test_an_engine_that_is_killed_is_replaced(settled: Any, begin: Any) -> None:
    """Runs end with it; the server is not ready at once, and ready again by itself; workers stay."""
    async with open_processes(workers=2, spares=0, fake_engine=FakeSettings(token_delay_s=0.005)) as pool:
        await pool.started()
        await settled(lambda: pool.is_ready)
        engine, *workers = pool.pids
        runs = await asyncio.gather(*(begin(pool, 1000) for _ in range(4)))
        os.kill(engine, signal.SIGKILL)
        for run in runs:
            with pytest.raises(EngineStoppedError):
                await run.result_json()
        await settled(lambda: not pool.is_ready)
        assert pool.models == ()

        await settled(lambda: pool.is_ready)
        assert await (await begin(pool, 4, "good morning")).result_json() == '"good"'
        assert pool.pids[0] not in (None, engine)
        assert pool.pids[1:] == workers


async def test_an_engine_that_stands_still_is_not_ready(
    settled: Any, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it goes on, it is, and its runs go on, too."""
    monkeypatch.setattr(engine_watch, "_BEAT_S", 0.02)
    async with open_processes(workers=1, spares=0, fake_engine=FakeSettings(token_delay_s=0.005)) as pool:
        await settled(lambda: pool.is_ready)
        run = await begin(pool, 100)
        engine = pool.pids[0]
        os.kill(engine, signal.SIGSTOP)
        await settled(lambda: not pool.is_ready)
        os.kill(engine, signal.SIGCONT)
        await settled(lambda: pool.is_ready)

        assert len(await run.result_json()) == 102
        assert pool.pids[0] == engine


async def test_an_engine_that_never_goes_on_is_replaced(settled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for for ever."""
    monkeypatch.setattr(engine_watch, "_BEAT_S", 0.02)
    monkeypatch.setattr(engine_watch, "_STUCK_BEATS", 20)
    async with open_processes(workers=1, spares=0, fake_engine=True) as pool:
        await settled(lambda: pool.is_ready)
        engine = pool.pids[0]
        os.kill(engine, signal.SIGSTOP)
        await settled(lambda: pool.is_ready and pool.pids[0] != engine)


async def test_an_engine_that_cannot_start_says_why(settled: Any, caplog: pytest.LogCaptureFixture) -> None:
    """In the log, each time; and to who has just started the server."""
    async with open_processes(workers=1, spares=0, model="/there/is/no/such/model") as pool:
        with pytest.raises(ConfigError, match="/there/is/no/such/model"):
            await pool.started()
        await settled(lambda: caplog.text.count("ended with status 2") > 1)

    assert "/there/is/no/such/model" in caplog.text


async def test_a_worker_that_is_taken_over_is_no_other_tenant(settled: Any, begin: Any) -> None:
    """The engine opens runs for the front's grants alone; a worker has those of the runs that it was given."""
    async with open_processes(workers=1, spares=0, fake_engine=True) as pool:
        await settled(lambda: pool.is_ready)
        assert await (await begin(pool, 4, "good morning")).result_json() == '"good"'
        current = pool._engine.current
        assert current is not None
        client = await asyncio.to_thread(connect_engine, current[1])
        stopped: list[Any] = []
        client.listen(stopped.extend)
        client.submit([OpenRun(client.new_id(), "acme")])
        await settled(lambda: stopped)
        await asyncio.to_thread(client.close)

        assert "no grant" in stopped[0].error.message
        assert await (await begin(pool, 4, "good morning")).result_json() == '"good"'
