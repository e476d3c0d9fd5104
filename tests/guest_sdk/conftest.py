"""The guest SDK on this Python with a stub for the host, and in its sandbox on a host with a fake engine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tartlet import sync
from tartlet.errors import GuestError
from tartlet.events import Log, Output
from tartlet.languages.componentize import RUN_TOOL, WIT
from tartlet.languages.python import guest_sources
from tartlet.testing import FakeEngine

sys.path.insert(0, str(guest_sources()))

from tartlet_sdk import event_loop

T = TypeVar("T")

IMPORTS = "import asyncio, json\nfrom tartlet_sdk import *\n"


@pytest.fixture(scope="session")
def bindings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The modules that componentize-py generates of wit/, importable; their functions do nothing."""
    folder = tmp_path_factory.mktemp("bindings")
    command = [sys.executable, "-c", RUN_TOOL, "-d", str(WIT.resolve()), "-w", "runner", "bindings", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture
def stub(bindings: Path) -> Iterator[Any]:
    """The bindings, with the stub host of the runner's warm-up behind them: every call succeeds at once."""
    from tartlet_runner import stub_host

    from tartlet_sdk import wit

    with stub_host.installed():
        yield wit


@pytest.fixture
def run_async(stub: Any) -> Iterator[Callable[[Coroutine[Any, Any, T]], T]]:
    """Runs a coroutine on the SDK's event loop."""
    loop = event_loop.HostLoop()
    yield lambda coroutine: event_loop.run(loop, coroutine)
    loop.close()


class Sandbox:
    """A host on a fake engine that runs programs given as text."""

    def __init__(self, host: sync.Host) -> None:
        self.host = host

    def run(self, program: Any, input: Any = None, **options: Any) -> Any:
        """The result of a program; `IMPORTS` goes before its text."""
        return self.host.run(self._load(program), input, **options)

    def failure(self, program: Any, input: Any = None) -> str:
        """The message of a program that must fail."""
        with pytest.raises(GuestError) as caught:
            self.run(program, input)
        return caught.value.message

    def output(self, program: Any, input: Any = None) -> tuple[str, list[tuple[str, str]]]:
        """What a program prints, and its log lines with their levels."""
        events = list(self.host.start(self._load(program), input))
        text = "".join(event.text for event in events if isinstance(event, Output))
        return text, [(event.level, event.message) for event in events if isinstance(event, Log)]

    @staticmethod
    def _load(program: Any) -> Any:
        return IMPORTS + program if isinstance(program, str) else program


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A host on a fake engine, which echoes the last message."""
    engine = FakeEngine(token_delay_s=0.001)
    with sync.Host(engine=engine) as host:
        yield Sandbox(host)
    engine.check_integrity()
    engine.close()


@pytest.fixture(scope="session")
def tiny_host() -> Iterator[sync.Host]:
    """A host with the tiny model, whose texts mean nothing."""
    with sync.Host("tiny", threads=1, kv_pages=256) as host:
        yield host
        assert host.stats().engine.pages_held == 0


@pytest.fixture
def tiny(tiny_host: sync.Host) -> Callable[..., Any]:
    """Runs programs on the tiny model."""
    return lambda program, input=None: tiny_host.run(IMPORTS + program, input)
