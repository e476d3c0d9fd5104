import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tartlet.testing import ByteText, FakeEngine
from tartlet_engine.api import (
    AppendTokens,
    CancelGeneration,
    Chunk,
    CloseRun,
    Command,
    CreateContext,
    Done,
    EngineError,
    EngineStopped,
    ErrorCode,
    Event,
    Failed,
    Finished,
    FinishReason,
    FlushContext,
    ForkContext,
    Generate,
    LimitReached,
    OpenRun,
    PagesHeld,
    Sampling,
    Stop,
    TruncateContext,
)

SAMPLING = Sampling(seed=0)


class Recorder:
    """Listens to an engine, and waits for what it says."""

    def __init__(self, engine: FakeEngine) -> None:
        self.events: list[Event] = []
        self._news = threading.Condition()
        engine.listen(self._listen)

    def _listen(self, events: list[Event]) -> None:
        with self._news:
            self.events.extend(events)
            self._news.notify()

    def wait_for(self, kind: type[Any]) -> Any:
        """The first event of that kind."""

        def find() -> Event | None:
            return next((event for event in self.events if isinstance(event, kind)), None)

        with self._news:
            assert self._news.wait_for(find, timeout=10), f"no {kind.__name__} among {self.events}"
            return find()

    def text(self, generation_id: int) -> str:
        """The text that a generation gave."""
        return "".join(e.text for e in self.events if isinstance(e, Chunk) and e.generation_id == generation_id)


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    engine = FakeEngine()
    yield engine
    engine.check_integrity()
    engine.close()


def prompt(text: str, *more: Command, run: OpenRun | None = None) -> list[Command]:
    """Commands that open run 1 and fill its context 2."""
    tokens = tuple(ByteText().encode(text))
    return [run or OpenRun(1), CreateContext(2, 1), AppendTokens(2, tokens), *more]


def test_it_echoes_without_a_script(engine: FakeEngine) -> None:
    """Without a script a generation repeats the context's text and ends with eos."""
    recorder = Recorder(engine)

    engine.submit(prompt("grüße", Generate(3, 2, SAMPLING)))

    finished = recorder.wait_for(Finished)
    assert (recorder.text(3), finished.reason) == ("grüße", FinishReason.EOS)
    assert finished.usage.generated_tokens == len("grüße".encode()) + 1


@pytest.mark.parametrize(
    ("stop", "text", "reason", "stop_string"),
    [
        (Stop(strings=("lo w", "zz")), "hel", FinishReason.STOP_STRING, "lo w"),
        (Stop(max_tokens=4), "hell", FinishReason.LENGTH, None),
        (Stop(token_ids=(ord("w"),)), "hello w", FinishReason.STOP_TOKEN, None),
        (Stop(strings=("world!",)), "hello world", FinishReason.EOS, None),
    ],
)
def test_stop_conditions(
    engine: FakeEngine, stop: Stop, text: str, reason: FinishReason, stop_string: str | None
) -> None:
    """It honours every stop condition; a stop string is not part of the text, what merely resembles it is."""
    recorder = Recorder(engine)

    engine.submit(prompt("hello world", Generate(3, 2, SAMPLING, stop)))

    finished = recorder.wait_for(Finished)
    assert (recorder.text(3), finished.reason, finished.stop_string) == (text, reason, stop_string)


def test_forks_share_pages(engine: FakeEngine) -> None:
    """A fork takes no page of its own, and its first own token takes one."""
    engine.submit(prompt("x" * 40, ForkContext(2, 4, 40), ForkContext(2, 5, 40)))
    engine.check_integrity()
    assert engine.stats().pages_held == 3

    recorder = Recorder(engine)
    engine.submit([AppendTokens(4, (1,)), FlushContext(4, 6)])
    recorder.wait_for(Done)
    assert engine.stats().pages_held == 4

    engine.submit([TruncateContext(4, 16)])
    engine.check_integrity()
    assert engine.stats().pages_held == 3


def test_closing_a_run_frees_everything(engine: FakeEngine) -> None:
    """After `CloseRun`, no page is held and nothing is generated."""
    engine.submit(prompt("hello", Generate(3, 2, SAMPLING, Stop(ignore_eos=True)), CloseRun(1)))
    engine.check_integrity()

    stats = engine.stats()
    assert (stats.pages_free, stats.contexts, stats.running, stats.runs) == (stats.pages_total, 0, 0, 0)


def test_cancelling_ends_a_generation(engine: FakeEngine) -> None:
    """A cancelled generation finishes with the reason `cancelled`."""
    recorder = Recorder(engine)
    engine.submit(prompt("hello", Generate(3, 2, SAMPLING, Stop(ignore_eos=True))))

    recorder.wait_for(Chunk)
    engine.submit([CancelGeneration(3)])

    assert recorder.wait_for(Finished).reason is FinishReason.CANCELLED


@pytest.mark.parametrize(
    ("run", "limit"),
    [(OpenRun(1, max_generated_tokens=5), "generated_tokens"), (OpenRun(1, max_pages=1), "kv_pages")],
)
def test_limits_of_a_run(engine: FakeEngine, run: OpenRun, limit: str) -> None:
    """A run that uses more than it may hears which limit it is, and generates no more."""
    recorder = Recorder(engine)

    engine.submit(prompt("hello", Generate(3, 2, SAMPLING, Stop(ignore_eos=True)), run=run))

    reached = recorder.wait_for(LimitReached)
    assert (reached.run_id, reached.limit, reached.used) == (1, limit, reached.allowed + 1)
    assert engine.stats().running == 0


def test_no_page_free() -> None:
    """What finds no page fails alone, with `kv-exhausted`."""
    engine = FakeEngine(num_pages=2)
    recorder = Recorder(engine)

    engine.submit(prompt("x" * 33, FlushContext(2, 3)))

    assert recorder.wait_for(Failed).error.code is ErrorCode.KV_EXHAUSTED
    engine.check_integrity()
    engine.close()


def test_planned_failures(engine: FakeEngine) -> None:
    """`fail_next` fails one generation, and only one."""
    recorder = Recorder(engine)
    error = EngineError(ErrorCode.INTERNAL, "planned")
    engine.fail_next(error)

    engine.submit(prompt("hello", Generate(3, 2, SAMPLING), Generate(4, 2, SAMPLING)))

    assert recorder.wait_for(Failed) == Failed(3, error)
    assert recorder.wait_for(Finished).generation_id == 4


def test_a_crash_is_the_last_event(engine: FakeEngine) -> None:
    """After `crash`, listeners hear `EngineStopped` and nothing else."""
    recorder = Recorder(engine)
    engine.submit(prompt("hello", Generate(3, 2, SAMPLING, Stop(ignore_eos=True))))

    engine.crash("out of luck")

    assert recorder.wait_for(EngineStopped).error.message == "out of luck"
    engine.close()
    assert isinstance(recorder.events[-1], EngineStopped)


def _divide(prompt: str) -> str:
    return str(1 // 0)


@pytest.mark.parametrize(("replies", "said"), [([5], "must be a str, got 5"), (_divide, "ZeroDivisionError")])
def test_a_reply_that_fails(replies: Any, said: str) -> None:
    """A script with something else than text, or a function that raises, fails the generation and nothing else."""
    heard: list[Event] = []
    has_failed = threading.Event()

    def listen(events: list[Event]) -> None:
        heard.extend(events)
        has_failed.set()

    engine = FakeEngine(replies)
    engine.listen(listen)
    engine.submit([OpenRun(1), CreateContext(2, 1), AppendTokens(2, (65,)), Generate(3, 2, Sampling(seed=1))])
    assert has_failed.wait(10)
    engine.check_integrity()
    engine.close()

    (failed,) = [event for event in heard if not isinstance(event, PagesHeld)]
    assert isinstance(failed, Failed)
    assert failed.failed_id == 3
    assert said in failed.error.message
