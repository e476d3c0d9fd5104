"""The parts of the fake engine, without its thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tartlet.testing import FakeEngine
from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import OpenRun


@pytest.fixture
def state() -> Iterator[FakeState]:
    """What a fake engine of 4 pages knows when run 1 has begun. The test must leave it balanced."""
    engine = FakeEngine(num_pages=4)
    engine.close()
    state = FakeState(engine.models["fake"])
    state.runs[1] = OpenRun(1, max_pages=2)
    state.num_generated[1] = 0
    yield state
    state.check_integrity()
