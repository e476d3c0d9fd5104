"""The engine's process: how it starts, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tartlet.server.engine.process import CANNOT_START
from tartlet.server.engine.settings import EngineSettings
from tartlet.server.engine.socket_client import connect_engine
from tartlet.server.wire.socket_folder import SocketFolder
from tartlet_engine.api import EngineStopped
from tests.host.server.engine.conftest import Recorder, StartEngine

MODULE = [sys.executable, "-m", "tartlet.server.engine"]

# A parent that starts an engine, tells its process id, and goes when it is told to.
PARENT = """
import os, subprocess, sys
engine = subprocess.Popen([*sys.argv[1:], f"--parent={os.getpid()}"])
print(engine.pid, flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_it_serves_the_model_that_the_settings_name(start_process: StartEngine, tmp_path: Path) -> None:
    """With these settings, over the socket."""
    client = start_process(EngineSettings(model="tiny", threads=1, kv_pages=24, saved_path=str(tmp_path))).connect()

    assert [(info.name, info.num_pages) for info in client.models.values()] == [("tiny", 24)]
    client.check_integrity()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{", "cannot be read"),
        ('{"kv_page": 7}', "kv_page"),
        ('{"model": "tiny", "dtype": "int3"}', "dtype"),
        ('{"model": "./nowhere"}', "there is no nowhere"),
    ],
)
def test_what_cannot_be_started_says_why(socket_folder: SocketFolder, settings: str, message: str) -> None:
    """Without a traceback, and with a status that says that it is no use to try again."""
    path = socket_folder.socket_path("engine")
    done = subprocess.run(
        [*MODULE, f"--socket={path}", f"--settings={settings}"], capture_output=True, text=True, check=False
    )

    assert done.returncode == CANNOT_START
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not path.exists()


def test_it_ends_when_it_is_told_to(start_process: StartEngine) -> None:
    """SIGTERM ends it with status 0, and everybody hears that the engine was closed; SIGINT does nothing."""
    process = start_process(EngineSettings(model="tiny", threads=1, kv_pages=24))
    client = process.connect()
    heard = Recorder(client)
    os.kill(process.process.pid, signal.SIGINT)
    client.check_integrity()
    os.kill(process.process.pid, signal.SIGTERM)

    assert "closed" in heard.wait_for(EngineStopped).error.message
    assert process.process.wait(60) == 0


def test_it_can_be_ended_while_it_loads(socket_folder: SocketFolder) -> None:
    """Before there is an engine."""
    command = [*MODULE, f"--socket={socket_folder.socket_path('engine')}", '--settings={"model": "tiny"}']
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()  # that it begins
        process.terminate()
        assert process.wait(60) == 0


def test_it_goes_with_its_parent(socket_folder: SocketFolder) -> None:
    """However that ends."""
    path = socket_folder.socket_path("engine")
    engine = [*MODULE, f"--socket={path}", '--settings={"fake": {}}']
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        while not path.exists():
            pass
        heard = Recorder(connect_engine(path))
        parent.kill()

    heard.wait_for(EngineStopped)


def test_it_loads_no_wasmtime() -> None:
    """Nor torch, before there is a model to load."""
    code = "import sys, tartlet.server.engine.process; print(sorted({'wasmtime', 'torch', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
