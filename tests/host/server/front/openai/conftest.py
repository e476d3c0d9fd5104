"""The application on an engine that plays a script, and OpenAI's own client for it."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import httpx2
import openai
import pytest

from tartlet.languages.language import ProgramSource
from tartlet.languages.python import PYTHON, guest_sources
from tartlet.server.front.app import create_app
from tartlet.server.front.in_process import open_in_process
from tartlet.server.front.openai.programs import FOLDER
from tartlet.server.front.openai.published import Published
from tartlet.server.front.runs import OpenPolicy, RunRegistry
from tartlet.server.front.services import Services
from tartlet.server.program_facts import source_facts
from tartlet.server.requests import ProgramRef
from tartlet.server.sandboxes import Sandboxes
from tartlet.testing import FakeEngine
from tartlet.testing.fake_engine import echo


class Script:
    """What the engine generates next: these texts in order, then an echo."""

    def __init__(self) -> None:
        self.replies: list[str] = []
        self.prompts: list[str] = []
        """What contexts held when generations began."""

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.replies.pop(0) if self.replies else echo(prompt)


class Shelf:
    """What tenants have published. Implements `PublishedPrograms`."""

    def __init__(self, store: Callable[[str], ProgramRef]) -> None:
        self._store = store
        self._published: dict[str, list[Published]] = {}

    async def publish(self, tenant: str, name: str, source: str) -> None:
        """Give a program a name."""
        program = self._store(source)
        facts = source_facts(ProgramSource(PYTHON.name, "main", {"main.py": source}))
        self._published.setdefault(tenant, []).append(Published(name, program, facts, 1_700_000_000))

    async def all_of(self, tenant: str) -> Sequence[Published]:
        """See `PublishedPrograms`."""
        return self._published.get(tenant, [])

    async def find(self, tenant: str, name: str) -> Published | None:
        """See `PublishedPrograms`."""
        return next((each for each in await self.all_of(tenant) if each.name == name), None)


@pytest.fixture
def script() -> Script:
    """What the engine generates."""
    return Script()


@pytest.fixture
def engine(script: Script) -> Iterator[FakeEngine]:
    """Plays the script. At the end nothing may be left in it."""
    engine = FakeEngine(script, adapters=["terse"])
    yield engine
    engine.close()


@pytest.fixture
async def sandboxes(engine: FakeEngine) -> AsyncIterator[Sandboxes]:
    """Sandboxes in this process, on that engine."""
    async with open_in_process(engine=engine, spares=0) as opened:
        yield opened
    engine.check_integrity()


@pytest.fixture
def shelf(sandboxes: Sandboxes, store_source: Callable[[str], ProgramRef]) -> Shelf:
    """What is published."""
    return Shelf(store_source)


@pytest.fixture
async def services(services: Services, sandboxes: Sandboxes, shelf: Shelf) -> AsyncIterator[Services]:
    """What the routes work with."""

    async def authenticate(key: str) -> Any:
        from tartlet.server.front.auth import Caller

        return Caller(key.removeprefix("key-of-"), frozenset({"openai"}))

    runs = RunRegistry(sandboxes, OpenPolicy())
    yield dataclasses.replace(services, runs=runs, authenticate=authenticate, published=shelf)
    await runs.close()


@pytest.fixture
async def client(services: Services) -> AsyncIterator[openai.AsyncOpenAI]:
    """OpenAI's client, as the tenant acme."""
    transport = httpx2.ASGITransport(create_app(services), raise_app_exceptions=False)
    async with openai.AsyncOpenAI(
        api_key="key-of-acme",
        base_url="http://server/v1",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    ) as opened:
        yield opened


@pytest.fixture
def load_program() -> Iterator[Callable[[str], Any]]:
    """Imports a module of the programs, on this Python."""
    before = set(sys.modules)
    sys.path[:0] = [str(FOLDER), str(guest_sources())]
    yield importlib.import_module
    del sys.path[:2]
    for path in FOLDER.glob("*.py"):
        if path.stem not in before:
            sys.modules.pop(path.stem, None)
