"""Engines without a model and with the tiny one, in this process and in others, and clients of theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tartlet.errors import EngineStoppedError
from tartlet.server.engine.engine_server import EngineServer
from tartlet.server.engine.settings import EngineSettings, FakeSettings
from tartlet.server.engine.socket_client import SocketClient, connect_engine
from tartlet.server.wire.socket_folder import SocketFolder
from tartlet.testing import FakeEngine
from tartlet_engine.api import EngineClient, EngineError, EngineStats, Event, PagesHeld

Serve = Callable[[FakeEngine], "Served"]
StartEngine = Callable[..., "EngineProcess"]


class Recorder:
    """Listens to an engine, and waits for what it says."""

    def __init__(self, client: EngineClient) -> None:
        self.events: list[Event] = []  # but for `PagesHeld`, which comes when it comes
        self._news = threading.Condition()
        client.listen(self._listen)

    def _listen(self, events: list[Event]) -> None:
        with self._news:
            self.events.extend(event for event in events if not isinstance(event, PagesHeld))
            self._news.notify()

    def wait_for(self, kind: type[Any], where: Callable[[Any], bool] = lambda event: True, number: int = 1) -> Any:
        """The first event of that kind of which that holds, or the second, and so on."""

        def found() -> list[Event]:
            return [event for event in self.events if isinstance(event, kind) and where(event)]

        with self._news:
            assert self._news.wait_for(lambda: len(found()) >= number, timeout=60), f"no {kind.__name__}"
            return found()[number - 1]


class Served:
    """A fake engine that is served in this process."""

    def __init__(self, engine: FakeEngine, path: Path) -> None:
        self.engine = engine
        self.path = path
        self.stops: list[EngineError] = []
        self.server = EngineServer(engine, path, {"fake": None}, self.stops.append)
        self._clients = ExitStack()

    def connect(self) -> SocketClient:
        """Another client."""
        client = connect_engine(self.path)
        self._clients.callback(client.close)
        return client

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until that is true."""
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def close(self) -> None:
        """End it all."""
        self._clients.close()
        self.server.close()
        self.engine.close()


class EngineProcess:
    """An engine in a process of its own."""

    def __init__(self, path: Path, settings: EngineSettings) -> None:
        self.path = path
        command = [sys.executable, "-m", "tartlet.server.engine", f"--socket={path}", f"--parent={os.getpid()}"]
        self.process = subprocess.Popen([*command, f"--settings={msgspec.json.encode(settings).decode()}"])
        self._clients = ExitStack()

    def connect(self) -> SocketClient:
        """A client, as soon as the engine is there."""
        while True:
            assert self.process.poll() is None, "the engine's process has ended"
            try:
                client = connect_engine(self.path)
            except EngineStoppedError:
                time.sleep(0.02)
            else:
                self._clients.callback(client.close)
                return client

    def hold(self) -> None:
        """Hold it up: returns when none of its threads runs."""
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def go_on(self) -> None:
        """Let it go on."""
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it all."""
        self._clients.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def socket_folder() -> Iterator[SocketFolder]:
    with SocketFolder() as folder:
        yield folder


@pytest.fixture
def serve(socket_folder: SocketFolder) -> Iterator[Serve]:
    """Serves fake engines, whose books must balance at the end, with nothing left of anybody."""
    served: list[Served] = []

    def begin(engine: FakeEngine) -> Served:
        served.append(Served(engine, socket_folder.socket_path(f"engine-{len(served)}")))
        return served[-1]

    yield begin
    for each in served:
        each.close()
        each.engine.check_integrity()
        stats = each.engine.stats()
        assert (stats.runs, stats.contexts, stats.pages_held) == (0, 0, 0)


@pytest.fixture
def served(serve: Serve) -> Served:
    """A fake engine that is served in this process."""
    return serve(FakeEngine())


@pytest.fixture
def start_process(socket_folder: SocketFolder) -> Iterator[StartEngine]:
    """Starts engines in processes of their own: fake ones, unless settings say otherwise."""
    processes: list[EngineProcess] = []

    def start(settings: EngineSettings | None = None, **fake: Any) -> EngineProcess:
        path = socket_folder.socket_path(f"engine-{len(processes)}")
        processes.append(EngineProcess(path, settings or EngineSettings(fake=FakeSettings(**fake))))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


def nothing_held(stats: EngineStats) -> bool:
    """Whether an engine holds nothing of anybody."""
    return (stats.runs, stats.contexts, stats.running, stats.pages_held) == (0, 0, 0, 0)


@pytest.fixture
def recorder() -> type[Recorder]:
    """Listens to a client."""
    return Recorder
