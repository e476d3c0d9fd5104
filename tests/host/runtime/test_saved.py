from typing import Any

import pytest

from tartlet.runtime.context import ContextState
from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.saved import OpeningState, SaveOperation, check_name
from tartlet.wasm.host_function import Err
from tartlet_engine.api import ErrorCode


def save(bench: Any, run: Any, name: str = "saved", text: str = "hello", **options: Any) -> Any:
    """Save a context of a user's message, and give the event when it is ready."""

    def start() -> Any:
        context = ContextState.create(run, bench.model)
        context.append_message("user", [], list(text.encode()))
        operation = SaveOperation(context, name, options.get("ttl_ms"), overwrite=options.get("overwrite", False))
        context.drop()
        return operation.event

    event = bench.call(start)
    bench.wait_until(lambda: event.status is EventStatus.READY)
    return event


def opening_of(bench: Any, run: Any, name: str = "saved") -> OpeningState:
    opening: OpeningState = bench.call(lambda: OpeningState(run, bench.model, name))
    bench.wait_until(lambda: opening.event.status is EventStatus.READY)
    return opening


def test_what_is_saved_can_be_opened(bench: Any) -> None:
    """Tokens and chat come back, though the context was freed while it was saved; the opened one can go on."""
    run = bench.new_run()
    event = save(bench, run)
    opening = opening_of(bench, run)
    context = bench.call(opening.take)
    bench.call(context.cue)

    assert event.error is None
    assert bytes(context.tokens.tolist()[:5]) == b"hello"
    assert context.chat.state.roles == ("user",)
    assert context.chat.state.is_turn_open
    bench.call(context.drop)
    bench.call(opening.drop)
    bench.wait_until(lambda: bench.engine.stats().contexts == 0)


def test_errors_are_the_outcome(bench: Any) -> None:
    """A taken name fails the save's event; a name that is not there fails the taking."""
    run = bench.new_run()
    save(bench, run)
    again = save(bench, run)
    overwritten = save(bench, run, overwrite=True)
    missing = opening_of(bench, run, "missing")
    with pytest.raises(Err) as caught:
        bench.call(missing.take)

    assert again.error.code is ErrorCode.ALREADY_EXISTS
    assert overwritten.error is None
    assert caught.value.value["code"] == "not-found"


def test_a_context_is_taken_once(bench: Any) -> None:
    """Before the event nothing can be taken, afterwards once."""
    run = bench.new_run()
    save(bench, run)

    def too_early() -> Any:
        opening = OpeningState(run, bench.model, "saved")
        with pytest.raises(Err, match="unavailable"):
            opening.take()
        return opening

    opening = bench.call(too_early)
    bench.wait_until(lambda: opening.event.status is EventStatus.READY)
    bench.call(opening.take)
    with pytest.raises(Err, match="taken already"):
        bench.call(opening.take)


def test_an_opening_that_is_dropped_frees_its_context(bench: Any) -> None:
    """Whether it was ready or not, nothing of it is left."""
    run = bench.new_run()
    save(bench, run)
    bench.call(lambda: OpeningState(run, bench.model, "saved").drop())
    opening = opening_of(bench, run)
    bench.call(opening.drop)
    bench.wait_until(lambda: bench.engine.stats().contexts == 0)

    assert bench.engine.stats().pages_held == 0


@pytest.mark.parametrize("name", ["", ".", "-a", "a b", "ä", "a\n", "x" * 129])
def test_names_have_a_character_set(name: str) -> None:
    """What no saved context can be called is refused before the engine is asked."""
    with pytest.raises(Err, match="cannot be named"):
        check_name(name)


@pytest.mark.parametrize("name", ["a", "9", "agent/run-7:2.x_y", "x" * 128])
def test_plain_names_are_taken(name: str) -> None:
    """Letters, digits and a few signs."""
    check_name(name)
