from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from tartlet.server.front.processes.child import Child

PRINTING = "import sys; print('to the log', *sys.argv[2:], flush=True); sys.exit(3)"
WAITING = "import time; print('waits', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('waits', flush=True); time.sleep(600)"
)
PARENT = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {WAITING!r}]); time.sleep(600)"


async def start(folder: Path, code: str, *arguments: str) -> Child:
    """Start a module with this code."""
    (folder / "child_for_test.py").write_text(code)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}
    return await Child.start("the child", "child_for_test", arguments, environment=environment)


async def said(caplog: pytest.LogCaptureFixture, what: str) -> None:
    """Wait until the log has it."""
    async with asyncio.timeout(60):
        while what not in caplog.text:
            await asyncio.sleep(0.01)


async def test_its_arguments_and_its_last_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What it writes is logged; its end is told in words."""
    child = await start(tmp_path, PRINTING, "one")
    await child.wait()
    await child.stop(60)

    assert "the child: to the log one" in caplog.text
    assert child.end == "ended with status 3; it said last:\nto the log one"


async def test_it_is_asked_to_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By SIGTERM, which most obey."""
    child = await start(tmp_path, WAITING)
    await said(caplog, "waits")
    assert child.end == "is running"
    await child.stop(60)

    assert child.end.startswith("was ended by SIGTERM")


async def test_who_does_not_obey_is_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After some time; one that is stopped, too."""
    child = await start(tmp_path, STUBBORN)
    await said(caplog, "waits")
    os.kill(child.pid, signal.SIGSTOP)
    await child.stop(0.01)

    assert child.end.startswith("was ended by SIGKILL")


async def test_what_it_has_started_ends_with_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They are one process group."""
    child = await start(tmp_path, PARENT)
    await said(caplog, "waits")
    (grandchild,) = psutil.Process(child.pid).children()
    os.kill(child.pid, signal.SIGKILL)
    await child.wait()
    await child.stop(60)

    grandchild.wait(60)
    assert not grandchild.is_running()
