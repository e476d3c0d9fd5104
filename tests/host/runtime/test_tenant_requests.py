"""What the operator asks on behalf of a tenant: every wait ends, and no run is left in the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

import tartlet
from tartlet.testing import FakeEngine
from tartlet_engine.api import Command, ListSaved


class SlowEngine(FakeEngine):
    """Keeps `ListSaved` back until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[ListSaved] = []

    def submit(self, commands: Sequence[Command], run_id: int | None = None) -> None:
        self.held += [command for command in commands if isinstance(command, ListSaved)]
        super().submit([command for command in commands if not isinstance(command, ListSaved)], run_id)

    def go_on(self) -> None:
        super().submit(self.held)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("ending", ["stop", "close"])
async def test_whoever_waits_is_told(ending: str) -> None:
    """If engine or host end before the answer is there, the wait ends with an error."""
    engine = SlowEngine()
    async with tartlet.Host(engine=engine) as host:
        waiting = asyncio.create_task(host.saved_contexts())
        await until(lambda: engine.held)
        if ending == "stop":
            engine.crash("gone")
            with pytest.raises(tartlet.EngineStoppedError):
                await waiting
            with pytest.raises(tartlet.EngineStoppedError):
                await host.saved_contexts()
    if ending == "close":
        with pytest.raises(tartlet.RunCancelledError):
            await waiting
        engine.check_integrity()
        assert engine.stats().runs == 0
    engine.close()


async def test_a_wait_that_is_given_up() -> None:
    """The answer comes to nobody, and nothing is left of the request."""
    engine = SlowEngine()
    async with tartlet.Host(engine=engine) as host:
        waiting = asyncio.create_task(host.saved_contexts())
        await until(lambda: engine.held)
        waiting.cancel()
        await asyncio.wait([waiting])
        engine.go_on()
        await until(lambda: engine.stats().runs == 0)
    engine.check_integrity()
    engine.close()


async def test_a_host_that_is_closed() -> None:
    """It says so, and asks nothing."""
    engine = FakeEngine()
    async with tartlet.Host(engine=engine) as host:
        pass
    with pytest.raises(tartlet.ConfigError, match="not open"):
        await host.saved_contexts()
    engine.close()
