from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from tartlet.errors import ConfigError, RunCancelledError, UnavailableError, WorkerLostError
from tartlet.events import RunUsage
from tartlet.server.engine.settings import FakeSettings
from tartlet.server.front.processes.opening import open_processes
from tartlet.server.front.processes.pool import WorkerPool
from tartlet.server.requests import RunRequest

pytestmark = pytest.mark.runner


async def test_a_worker_that_is_killed_costs_its_runs_and_no_others(settled: Any, begin: Any) -> None:
    """Fifty end as lost, with their usage; fifty others end as on a quiet day; another takes its place."""
    texts = [f"{number} is a number of which much could be said. " * 8 for number in range(100)]
    async with open_processes(workers=2, spares=0, fake_engine=FakeSettings(token_delay_s=0.005)) as pool:
        await settled(lambda: len(_links(pool)) == 2)
        quiet = [await (await begin(pool, 300, text)).result_json() for text in texts[:2]]
        runs = await asyncio.gather(*(begin(pool, 300, text) for text in texts))
        assert [link.num_runs for link in _links(pool)] == [50, 50]
        os.kill(pool.pids[1], signal.SIGKILL)

        results = await asyncio.gather(*(run.result_json() for run in runs), return_exceptions=True)
        assert sum(isinstance(result, WorkerLostError) for result in results) == 50
        assert [result for result in results if isinstance(result, str)] == [
            f'"{text[:300]}"' for text, result in zip(texts, results, strict=True) if isinstance(result, str)
        ]
        assert quiet == [f'"{text[:300]}"' for text in texts[:2]]
        usages = [(await _events(run))[-1] for run in runs]
        assert {type(usage) for usage in usages} == {RunUsage}
        known = [usage for usage in usages if usage.page_seconds > 0]  # one may not have come to its generation
        assert len(known) > 90
        assert min(usage.prompt_tokens for usage in known) == min(len(text) for text in texts)
        assert sum(link.num_runs for link in _links(pool)) == 0

        await settled(lambda: len(_links(pool)) == 2)
        await asyncio.gather(*(begin(pool, 1) for _ in range(4)))
        await settled(lambda: _is_engine_idle(pool))


async def test_without_anybody_it_says_so(begin: Any) -> None:
    """Nothing has been done then."""
    async with open_processes(workers=1, spares=0, fake_engine=True) as pool:
        assert not pool.is_ready
        assert pool.models == ()
        assert await pool.engine_stats() is None
        with pytest.raises(UnavailableError):
            await begin(pool, 1)


async def test_closing_ends_what_runs(settled: Any, begin: Any) -> None:
    """As cancelled, whoever still waits for it."""
    async with open_processes(workers=1, spares=0, fake_engine=FakeSettings(token_delay_s=0.005)) as pool:
        await settled(lambda: pool.is_ready)
        run = await begin(pool, 1000)
        await pool.close()
        with pytest.raises(RunCancelledError, match="the server is closing"):
            await run.result_json()
        with pytest.raises(UnavailableError):
            await begin(pool, 1)


async def test_a_run_that_fits_no_message_is_refused(settled: Any, story: Any) -> None:
    """It costs nothing but itself."""
    async with open_processes(workers=1, spares=0, fake_engine=True) as pool:
        await settled(lambda: pool.is_ready)
        with pytest.raises(ConfigError, match="cannot be asked for"):
            await pool.start(RunRequest("run_1", "acme", story, " " * (64 << 20), {}))
        assert sum(link.num_runs for link in _links(pool)) == 0
        assert pool.is_ready


def _links(pool: WorkerPool) -> list[Any]:
    return [worker.usable_link for worker in pool._workers if worker.usable_link is not None]


async def _is_engine_idle(pool: WorkerPool) -> bool:
    stats = await pool.engine_stats()
    return stats is not None and stats.runs == stats.pages_held == 0 and stats.pages_free == stats.pages_total


async def _events(run: Any) -> list[Any]:
    events = []
    while (event := await run.next_event()) is not None:
        events.append(event)
    return events
