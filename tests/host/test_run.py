"""Runs as their callers see them: results, cancels, and who may wait."""

import asyncio
from collections.abc import AsyncIterator

import pytest

import tartlet
from tartlet.testing import FakeEngine

pytestmark = pytest.mark.runner

ECHO = """
from tartlet_sdk import Model, inferlet
@inferlet
async def main(text: str = "hello", n: int = 1):
    context = Model.default().context()
    context.user(text)
    forks = [context.fork() for _ in range(n)]
    drafts = [await fork.generate() for fork in forks]
    print(drafts[0].text)
    return [draft.text for draft in drafts]
"""
WAIT = "import asyncio\nfrom tartlet_sdk import inferlet\n@inferlet\nasync def main():\n    await asyncio.sleep(3600)\n"
ENDLESS = """
from tartlet_sdk import Model, inferlet
@inferlet
async def main():
    context = Model.default().context()
    context.fill("x" * 200_000)
    async for chunk in context.generate():
        print(chunk.text, end="", flush=True)
"""


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    engine = FakeEngine(context_len=10**6, num_pages=10**6)
    yield engine
    engine.check_integrity()
    assert engine.stats().pages_held == engine.stats().runs == 0
    engine.close()


async def test_the_result_can_be_had_again(engine: FakeEngine) -> None:
    """Result and error can be asked for any number of times, by several at once."""
    async with tartlet.Host(engine=engine) as host:
        run = await host.start(ECHO, {"text": "a"})
        assert await asyncio.gather(run.result(), run.result()) == [["a"], ["a"]]

        failing = await host.start("from tartlet_sdk import inferlet\n@inferlet\ndef main():\n    return 1 / 0\n")
        for _ in range(2):
            with pytest.raises(tartlet.GuestError, match="ZeroDivisionError"):
                await failing.result()


@pytest.mark.parametrize("delay", [0.0, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016])
@pytest.mark.parametrize("source", [WAIT, ENDLESS, ECHO])
async def test_cancel_at_every_moment(engine: FakeEngine, source: str, delay: float) -> None:
    """Whenever it comes, a cancel ends the run as cancelled or comes too late; nothing is left either way."""
    async with tartlet.Host(engine=engine) as host:
        run = await host.start(source)
        await asyncio.sleep(delay)
        run.cancel()
        run.cancel()
        try:
            assert await run.result() == ["hello"]
        except tartlet.RunCancelledError:
            assert run.has_ended
        assert isinstance([event async for event in run][-1], tartlet.RunUsage)
        assert host.stats().runs.live == 0


async def test_waiting_on_another_loop(engine: FakeEngine) -> None:
    """It is refused, because that wait would never end; what runs goes on."""
    async with tartlet.Host(engine=engine) as host:
        run = await host.start(
            "import asyncio\n" + ECHO.replace("    return", "    await asyncio.sleep(60)\n    return", 1)
        )
        for wait in (run.result, run.next_event):
            with pytest.raises(tartlet.ConfigError, match="another event loop"):
                await asyncio.to_thread(lambda wait=wait: asyncio.run(wait()))
        assert not run.has_ended
