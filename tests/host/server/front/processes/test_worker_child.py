from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from tartlet.errors import WorkerLostError
from tartlet.server.engine.settings import FakeSettings
from tartlet.server.front.processes import worker_child
from tartlet.server.front.processes.opening import open_processes

pytestmark = pytest.mark.runner


async def test_a_worker_that_stands_still_gets_no_runs_and_is_replaced(
    settled: Any, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had is lost."""
    monkeypatch.setattr(worker_child, "_SLUGGISH_BEATS", 2)
    monkeypatch.setattr(worker_child, "_STUCK_BEATS", 4)
    async with open_processes(workers=1, spares=0, fake_engine=FakeSettings(token_delay_s=0.005)) as pool:
        await settled(lambda: pool.is_ready)
        run = await begin(pool, 1000)
        worker = pool.pids[1]
        os.kill(worker, signal.SIGSTOP)
        await settled(lambda: not pool.is_ready)
        assert pool.pids[1] == worker
        with pytest.raises(WorkerLostError):
            await run.result_json()

        await settled(lambda: pool.is_ready)
        assert pool.pids[1] != worker


async def test_a_worker_that_cannot_start_says_why(
    settled: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """It is tried again, ever more rarely; the server is not ready."""
    (tmp_path / "wasmtime.py").write_text("raise ImportError('this wasmtime is broken')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    async with open_processes(workers=1, spares=0, fake_engine=True) as pool:
        await settled(lambda: caplog.text.count("worker 1 ended with status 1") == 2)
        assert not pool.is_ready

    assert "this wasmtime is broken" in caplog.text


async def test_a_worker_has_no_secrets(settled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in its environment nor on its command line."""
    monkeypatch.setenv("TARTLET_DATABASE", "postgresql://user:secret@host/db")
    async with open_processes(workers=1, spares=0, fake_engine=True) as pool:
        await settled(lambda: pool.is_ready)
        for pid in pool.pids:
            process = psutil.Process(pid)
            assert "secret" not in str(process.cmdline())
            if os.getuid() == 0:  # nobody else may look at a process that keeps itself private
                assert "secret" not in str(process.environ())
