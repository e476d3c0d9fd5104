from __future__ import annotations

import pytest

from tartlet.errors import ConfigError
from tartlet.server.front.in_process import open_in_process
from tartlet.testing import FakeEngine


async def test_it_opens_a_host_and_closes_it() -> None:
    """The engine that it was given stays open, and can serve another host."""
    engine = FakeEngine()
    for _ in range(2):
        async with open_in_process(engine=engine, spares=0) as sandboxes:
            assert sandboxes.is_ready
            assert [model.name for model in sandboxes.models] == list(engine.models)
            assert (await sandboxes.engine_stats()) == engine.stats()
        with pytest.raises(ConfigError, match="not open"):
            _ = sandboxes.models
    engine.close()
