"""Stored programs, and sandboxes without a model."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest

from tartlet.server.front.in_process import open_in_process
from tartlet.server.requests import ProgramRef, SourceFile
from tartlet.server.sandboxes import Sandboxes
from tartlet.testing import FakeEngine

StoreSource = Callable[[str], ProgramRef]
StoreComponent = Callable[[bytes], ProgramRef]


@pytest.fixture
async def sandboxes() -> AsyncIterator[Sandboxes]:
    """Sandboxes in this process, on an engine without a model."""
    engine = FakeEngine()
    async with open_in_process(engine=engine, spares=0) as opened:
        yield opened
    engine.check_integrity()
    engine.close()


@pytest.fixture
def store_source(tmp_path: Path) -> StoreSource:
    """Writes the text of an inferlet to where the front would keep it."""

    def store(text: str) -> ProgramRef:
        return _store(msgspec.json.encode(SourceFile("main", {"main.py": text})), "source", tmp_path)

    return store


@pytest.fixture
def store_component(tmp_path: Path) -> StoreComponent:
    """Writes a component to where the front would keep it."""
    return lambda component: _store(component, "component", tmp_path)


def _store(data: bytes, kind: str, folder: Path) -> ProgramRef:
    digest = hashlib.sha256(data).hexdigest()
    path = folder / digest
    path.write_bytes(data)
    return ProgramRef(digest, str(path), "source" if kind == "source" else "component", "acme/program")
