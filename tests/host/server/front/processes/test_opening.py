from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tartlet.errors import ConfigError
from tartlet.server.front.processes.opening import open_processes

pytestmark = pytest.mark.runner

FRONT = """
import asyncio, uvloop
from tartlet.server.front.processes.opening import open_processes

async def main():
    async with open_processes(workers=2, spares=0, fake_engine=True) as pool:
        while not pool.is_ready:
            await asyncio.sleep(0.01)
        print(*pool.pids, flush=True)
        await asyncio.to_thread(input)

uvloop.run(main())
"""


@pytest.fixture
def socket_parent(short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders for sockets are made."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    return short_folder


async def test_closing_leaves_nothing(settled: Any, socket_parent: Path) -> None:
    """No process, no socket, no folder; not even when it closes while it opens."""
    before = psutil.Process().children()  # those of other tests
    for wanted in (False, True):
        async with open_processes(workers=2, spares=1, fake_engine=True) as pool:
            await settled(lambda wanted=wanted: pool.is_ready if wanted else pool.pids[0] is not None)
            (folder,) = socket_parent.iterdir()
            assert folder.stat().st_mode & 0o777 == 0o700
        assert set(psutil.Process().children()) <= set(before)
        assert list(socket_parent.iterdir()) == []


async def test_children_go_with_a_front_that_is_killed(settled: Any, socket_parent: Path) -> None:
    """All of them; the next front sweeps the folder."""
    front, children = await _start_front()
    front.kill()
    await front.wait()

    await settled(lambda: not any(_lives(child) for child in children))
    (left,) = socket_parent.iterdir()
    async with open_processes(workers=1, spares=0, fake_engine=True):
        assert not left.exists()


async def test_it_closes_on_uvloop(socket_parent: Path) -> None:
    """Which is what serves HTTP."""
    front, children = await _start_front()
    front.stdin.write(b"\n")

    assert await front.wait() == 0
    assert not any(_lives(child) for child in children)
    assert list(socket_parent.iterdir()) == []


@pytest.mark.parametrize("settings", [{"colour": "red"}, {"kv_pages": "many"}])
async def test_a_setting_that_there_is_not(settings: dict[str, Any]) -> None:
    """Is refused before anything is started."""
    with pytest.raises(ConfigError, match=next(iter(settings))):
        async with open_processes(fake_engine=True, **settings):
            pytest.fail("it was opened")


def test_the_front_loads_neither_wasmtime_nor_torch() -> None:
    """However deep the import."""
    code = (
        "import sys, tartlet.server.front.processes.opening;"
        "print(sorted({'wasmtime', 'torch', 'transformers', 'cffi'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


async def _start_front() -> tuple[Any, list[psutil.Process]]:
    """A front in a process of its own, which closes at the end of a line, and its children."""
    pipe = asyncio.subprocess.PIPE
    front = await asyncio.create_subprocess_exec(sys.executable, "-c", FRONT, stdin=pipe, stdout=pipe)
    assert front.stdout is not None
    children = [psutil.Process(int(pid)) for pid in (await front.stdout.readline()).split()]
    assert len(children) == 3
    return front, children


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False
