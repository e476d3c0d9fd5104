import time
from typing import Any

import pytest

from tartlet.runtime.context import ContextState
from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.generation import GenerationState
from tartlet.wasm.host_function import Err
from tartlet_engine.api import Chunk, EngineError, ErrorCode, Failed, FinishReason, Sampling, Stop


def start(bench: Any, run: Any, text: bytes, *, interval_ns: int | None) -> GenerationState:
    """A generation that repeats `text`."""

    def work() -> GenerationState:
        context = ContextState.create(run, bench.model)
        context.append(list(text))
        return GenerationState(context, Sampling(seed=0), Stop(), interval_ns)

    generation: GenerationState = bench.call(work)
    return generation


def test_it_is_ready_once_at_the_end(bench: Any) -> None:
    """Without streaming the event stays pending until the end; the one chunk holds all, then the event is spent."""
    run = bench.new_run()
    generation = start(bench, run, b"hello", interval_ns=None)

    bench.wait_until(lambda: generation.event.status is EventStatus.READY)
    chunk = bench.call(generation.read)

    assert "".join(chunk.text) == "hello"
    assert chunk.finish is not None
    assert chunk.finish.reason is FinishReason.EOS
    assert generation.event.status is EventStatus.SPENT
    with pytest.raises(Err):
        bench.call(generation.read)


def test_streaming_announces_every_chunk(bench: Any) -> None:
    """With streaming it is ready while there is something to read, and pending again after it was read."""
    run = bench.new_run()
    generation = start(bench, run, b"x" * 2000, interval_ns=0)
    bench.wait_until(lambda: generation.event.status is EventStatus.READY)

    def read() -> tuple[int, EventStatus]:
        chunk = generation.read()
        return len(chunk.token_ids), generation.event.status

    num_tokens, status = bench.call(read)

    assert 0 < num_tokens < 2000
    assert status is EventStatus.PENDING
    bench.call(generation.drop)


def test_an_interval_joins_chunks(bench: Any) -> None:
    """The first token is announced at once; after a read, what comes within the interval waits for what comes after."""
    run = bench.new_run()
    generation = start(bench, run, b"x" * 2000, interval_ns=3600 * 10**9)
    bench.wait_until(lambda: generation.event.status is EventStatus.READY)
    first = len(bench.call(generation.read).token_ids)
    bench.wait_until(lambda: run.counters.generated_tokens >= first + 100)

    def later() -> tuple[EventStatus, EventStatus, int]:
        before = generation.event.status
        generation.handle(Chunk(0, (), ""), time.monotonic_ns() + 2 * 3600 * 10**9)
        return before, generation.event.status, len(generation.read().token_ids)

    before, after, num_tokens = bench.call(later)

    assert (before, after) == (EventStatus.PENDING, EventStatus.READY)
    assert num_tokens >= 100
    bench.call(generation.drop)


def test_the_end_does_not_wait_for_the_interval(bench: Any) -> None:
    """It is announced when it comes."""
    run = bench.new_run()
    generation = start(bench, run, b"x" * 50, interval_ns=3600 * 10**9)
    bench.wait_until(lambda: generation.event.status is EventStatus.READY)
    bench.call(generation.read)
    bench.wait_until(lambda: generation.event.status is EventStatus.READY)

    assert bench.call(generation.read).finish is not None


def test_a_dropped_generation_still_feeds_its_context(bench: Any) -> None:
    """Tokens that come after the drop are in the context, as they are in the engine; the event is gone."""
    run = bench.new_run()
    generation = start(bench, run, b"x" * 2000, interval_ns=0)
    bench.wait_until(lambda: generation.event.status is EventStatus.READY)

    bench.call(generation.drop)
    bench.wait_until(lambda: generation.context.generation is None)

    assert len(run.handles) == 0
    assert generation.context.length - 2000 == run.counters.generated_tokens


def test_a_failure_is_the_answer_to_every_read(bench: Any) -> None:
    """After a failure the event is ready with the error, and every read gives it."""
    run = bench.new_run()
    bench.engine.fail_next(EngineError(ErrorCode.KV_EXHAUSTED, "full"))
    generation = start(bench, run, b"x", interval_ns=None)

    bench.wait_until(lambda: generation.event.status is EventStatus.READY)

    assert generation.event.error == EngineError(ErrorCode.KV_EXHAUSTED, "full")
    for _ in range(2):
        with pytest.raises(Err):
            bench.call(generation.read)
    assert generation.context.generation is None


def test_text_alone_is_no_token(bench: Any) -> None:
    """Text that was held back may come without a token; it does not count as the first one."""
    run = bench.new_run()
    generation = start(bench, run, b"x" * 100, interval_ns=None)
    bench.wait_until(lambda: generation.event.status is EventStatus.READY)
    before = run.counters.generated_tokens

    bench.call(lambda: generation.handle(Chunk(0, (), "rest"), 0))

    assert run.counters.generated_tokens == before


def test_the_end_is_counted_once(bench: Any) -> None:
    """Counters take each generation's usage in."""
    run = bench.new_run()
    generations = [start(bench, run, b"ab", interval_ns=None) for _ in range(3)]
    bench.wait_until(lambda: all(g.event.status is EventStatus.READY for g in generations))

    assert (run.usage.generations, run.usage.generated_tokens, run.usage.prompt_tokens) == (3, 9, 6)
    assert not isinstance(generations[0].event.error, Failed)


def test_the_prompt_counts_from_the_beginning(bench: Any) -> None:
    """A run that ends in mid-generation has used its prompt, too."""
    run = bench.new_run()
    generation = start(bench, run, b"x" * 2000, interval_ns=0)

    assert (run.usage.generations, run.usage.prompt_tokens) == (1, 2000)
    bench.call(generation.drop)
