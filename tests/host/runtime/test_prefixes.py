import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import tartlet
from tartlet import compose, sync
from tartlet.runtime.prefixes import prefix_tokens
from tartlet.testing import FakeEngine
from tartlet.testing.byte_text import ByteText
from tartlet_engine.api import Command, EngineClient, PublishPrefix, UnpublishPrefix


class SlowEngine(FakeEngine):
    """Keeps `PublishPrefix` back until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[PublishPrefix] = []
        self.unpublished: list[int] = []

    def submit(self, commands: Sequence[Command], run_id: int | None = None) -> None:
        self.held += [command for command in commands if isinstance(command, PublishPrefix)]
        self.unpublished += [command.prefix_id for command in commands if isinstance(command, UnpublishPrefix)]
        super().submit([command for command in commands if not isinstance(command, PublishPrefix)], run_id)

    def go_on(self) -> None:
        super().submit(self.held)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.fixture(scope="module")
def real() -> Any:
    engine = compose.start_engine("tiny", dtype="float32", threads=1, kv_pages=40)
    yield engine
    engine.check_integrity()
    assert engine.stats().pages_held == 0
    engine.close()


def test_published_and_unpublished(real: EngineClient) -> None:
    """Its whole pages are held until it is let go of, or the host closes."""
    with sync.Host(engine=real) as host:
        number = host.publish_prefix(range(100, 140))
        real.check_integrity()
        assert host.stats().engine.pages_held == 2
        host.unpublish_prefix(number)
        with pytest.raises(tartlet.ConfigError, match=f"no prefix of the number {number}"):
            host.unpublish_prefix(number)
        host.publish_prefix("A text of the operator, long enough for a page.", role="system")
        assert host.stats().engine.pages_held > 0
    real.check_integrity()

    assert real.stats().pages_held == 0


@pytest.mark.parametrize(
    ("prefix", "role", "message"),
    [
        ("short", None, "16 tokens"),
        (range(16 * 21), None, "20"),
        (["a"], None, "token ids"),
        (range(16), "system", "role"),
        (5, None, "token ids"),
        (b"x" * 100, None, "got bytes"),
        (bytearray(100), None, "got bytearray"),
        ("x" * 100, "nobody", "role"),
    ],
)
def test_what_cannot_be_published(real: EngineClient, prefix: Any, role: str | None, message: str) -> None:
    """Too short, too long, of another type, or a role without a text or unknown: an error that says so."""
    with sync.Host(engine=real) as host, pytest.raises(tartlet.ConfigError, match=message):
        host.publish_prefix(prefix, role=role)


def test_prefixes_of_an_unknown_adapter(real: EngineClient) -> None:
    """Cannot be published, and the error names the adapter."""
    with (
        sync.Host(engine=real) as host,
        pytest.raises(tartlet.ConfigError, match="cannot publish: tiny has no adapter 'a'"),
    ):
        host.publish_prefix(range(100, 140), adapter="a")


@pytest.mark.parametrize("ending", ["stop", "unpublish", "close"])
async def test_whoever_waits_is_told(ending: str) -> None:
    """If engine or host end before a prefix is published, or it is unpublished, the wait ends with an error."""
    engine = SlowEngine()
    async with tartlet.Host(engine=engine) as host:
        waiting = asyncio.create_task(host.publish_prefix([1] * 100))
        await until(lambda: engine.held)
        if ending == "stop":
            engine.crash("gone")
        elif ending == "unpublish":
            host.unpublish_prefix(engine.held[0].prefix_id)
        if ending != "close":
            with pytest.raises(tartlet.EngineStoppedError if ending == "stop" else tartlet.RunCancelledError):
                await waiting
    if ending == "close":
        with pytest.raises(tartlet.RunCancelledError):
            await waiting
    engine.close()


async def test_a_wait_that_is_given_up() -> None:
    """What nobody waits for any more does not stay published."""
    engine = SlowEngine()
    async with tartlet.Host(engine=engine) as host:
        waiting = asyncio.create_task(host.publish_prefix(range(32)))
        await until(lambda: engine.held)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert engine.unpublished == []
        engine.go_on()
        await until(lambda: engine.unpublished)

        assert engine.unpublished == [engine.held[0].prefix_id]
    engine.close()


def test_the_tokens_of_a_prefix() -> None:
    """Ids stay, a text is encoded, and a message is what a chat begins with."""
    text = ByteText()

    assert prefix_tokens(text, (5, 6), None) == [5, 6]
    assert prefix_tokens(text, "ab", None) == text.encode("ab")
    assert prefix_tokens(text, "ab", "system") == text.chat_message((), "system", "ab")
