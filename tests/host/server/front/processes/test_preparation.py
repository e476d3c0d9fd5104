from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import psutil
import pytest

from tartlet import paths
from tartlet.errors import BuildError
from tartlet.languages import python
from tartlet.server.front.processes import preparation
from tartlet.server.front.processes.preparation import Preparation


async def test_what_is_there_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started for it."""
    (tmp_path / "python.wasm").write_bytes(b"runner")
    monkeypatch.setattr(python, "PREBUILT_RUNNER", tmp_path / "python.wasm")
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    (paths.components_folder() / f"{hashlib.sha256(b'runner').hexdigest()}-x.cwasm").touch()
    monkeypatch.setattr(preparation, "Child", None)

    await Preparation().done()


async def test_a_build_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks then lets it be tried again."""
    (tmp_path / "argparse.py").write_text("raise ImportError('this Python is broken')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    preparing = Preparation()
    for _ in range(2):
        with pytest.raises(BuildError, match="this Python is broken"):
            await preparing.done()


async def test_a_build_can_be_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it goes on."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    before = set(psutil.Process().children(recursive=True))  # those of other tests
    building = asyncio.create_task(Preparation().done())
    async with asyncio.timeout(60):
        while len(processes := set(psutil.Process().children(recursive=True)) - before) < 2:
            await asyncio.sleep(0.01)
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building

    _, left = psutil.wait_procs(processes, timeout=60)
    assert left == []
