"""The small real model, as programs see it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tartlet import compose, sync


@pytest.fixture(scope="session")
def real_engine() -> Iterator[Any]:
    """An engine with the small real model."""
    engine = compose.start_engine("smollm2-135m-instruct", dtype="float32", threads=1, kv_pages=1024)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def open_real_host(real_engine: Any) -> Iterator[sync.Host]:
    """A host on it, which all tests share."""
    with sync.Host(engine=real_engine) as host:
        yield host


@pytest.fixture
def real_host(open_real_host: sync.Host, real_engine: Any) -> Iterator[sync.Host]:
    """A host on the small real model, of which the test must leave nothing behind."""
    yield open_real_host
    deadline = time.monotonic() + 10
    while open_real_host.stats().engine.runs and time.monotonic() < deadline:
        time.sleep(0.01)
    real_engine.check_integrity()
    stats = open_real_host.stats()
    assert (stats.runs.live, stats.engine.runs, stats.engine.contexts, stats.engine.pages_held) == (0, 0, 0, 0)
    assert stats.engine.pages_free + stats.engine.pages_cached == stats.engine.pages_total
