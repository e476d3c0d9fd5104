from typing import Any

from tartlet.runtime.context import ContextState
from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.flush import EvictOperation, start_flush
from tartlet_engine.api import ErrorCode


def test_its_event_tells_when_it_is_done(bench: Any) -> None:
    """The event becomes ready without an error when the tokens are computed."""
    run = bench.new_run()

    def start() -> Any:
        context = ContextState.create(run, bench.model)
        context.append([1] * 100)
        return run.events.get(start_flush(context))

    event = bench.call(start)
    bench.wait_until(lambda: event.status is EventStatus.READY)

    assert event.error is None
    assert bench.engine.stats().pages_held == 7


def test_its_event_tells_what_went_wrong(bench: Any) -> None:
    """A flush that finds no page has the engine's error as its outcome."""
    run = bench.new_run()

    def start() -> Any:
        contexts = [ContextState.create(run, bench.model) for _ in range(17)]
        for context in contexts:
            context.append([1] * 4096)
        return [run.events.get(start_flush(context)) for context in contexts]

    events = bench.call(start)
    bench.wait_until(lambda: all(event.status is EventStatus.READY for event in events))

    assert [event.error.code if event.error else None for event in events] == [None] * 16 + [ErrorCode.KV_EXHAUSTED]


def test_freeing_the_context_ends_it_as_cancelled(bench: Any) -> None:
    """Whoever waits for a flush of a context that is freed under it is not left waiting."""
    run = bench.new_run()

    def start() -> Any:
        context = ContextState.create(run, bench.model)
        context.append([1] * 1000)
        event = run.events.get(start_flush(context))
        context.drop()
        return event

    event = bench.call(start)
    bench.wait_until(lambda: bench.engine.stats().contexts == 0)

    assert event.status is EventStatus.READY
    assert event.error.code == ErrorCode.CANCELLED


def test_an_eviction_takes_tokens_out(bench: Any) -> None:
    """The host's tokens and chat change with the engine's; until then the context is as it was."""
    run = bench.new_run()

    def start() -> Any:
        context = ContextState.create(run, bench.model)
        context.append_message("user", [], list(range(10)))
        context.append_message("user", [], list(range(10, 40)))
        return context, EvictOperation(context, 5, 25), context.length

    context, operation, length = bench.call(start)
    bench.wait_until(lambda: operation.event.status is EventStatus.READY)

    assert length == 40
    assert context.tokens.tolist() == [*range(5), *range(25, 40)]
    assert (context.num_positions, context.eviction) == (40, None)
    bench.call(lambda: context.truncate(5))
    assert context.num_positions == 5
    assert context.chat.state.roles == ()


def test_an_eviction_of_a_freed_context_is_cancelled(bench: Any) -> None:
    """Whoever waits for it is told."""
    run = bench.new_run()

    def start() -> Any:
        context = ContextState.create(run, bench.model)
        context.append([1] * 100)
        operation = EvictOperation(context, 5, 25)
        context.drop()
        return operation

    operation = bench.call(start)

    assert operation.event.error.code is ErrorCode.CANCELLED
