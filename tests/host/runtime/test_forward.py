"""Forward passes as the host keeps them: read once, committed once, and over when their context goes."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet.runtime.context import ContextState
from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.forward import ForwardPass
from tartlet.wasm.host_function import Err
from tartlet_engine.api import EngineError, ErrorCode, Failed, RowRequest, Sampling


def begin(bench: Any, run: Any, **options: Any) -> ForwardPass:
    """A pass of three tokens, the last of which is another branch, after a context of two."""

    def work() -> ForwardPass:
        context = ContextState.create(run, bench.model)
        context.append([5, 6])
        defaults = {"parents": [-1, 0, -1], "positions": None, "requests": (RowRequest(-1, top=1),), "logprobs": False}
        return ForwardPass(context, [7, 8, 9], **(defaults | options))

    made: ForwardPass = bench.call(work)
    return made


def refused(bench: Any, action: Any) -> str:
    with pytest.raises(Err) as caught:
        bench.call(action)
    return str(caught.value.value["code"])


def test_it_is_read_and_committed_once(bench: Any) -> None:
    """The tokens of a path are the context's then, which is idle again."""
    run = bench.new_run()
    made = begin(bench, run)
    bench.wait_until(lambda: made.event.status is EventStatus.READY)
    context = made._context
    assert context.forward is made
    assert bench.call(made.read).rows[0].top[0].token_id == 7
    assert refused(bench, made.read) == "not-found"
    assert refused(bench, lambda: made.commit([1])) == "invalid-argument"
    bench.call(lambda: made.commit([0, 1]))

    assert context.tokens.tolist() == [5, 6, 7, 8]
    assert context.forward is None
    assert refused(bench, lambda: made.commit([])) == "not-found"
    bench.call(made.discard)
    bench.call(made.drop)
    assert run.counters.num_passes == 0


def test_positions_that_are_left_out_count(bench: Any) -> None:
    """What is committed takes the positions that it was computed at."""
    made = begin(bench, bench.new_run(), positions=[4, 9, 2])
    bench.wait_until(lambda: made.event.status is EventStatus.READY)
    bench.call(lambda: made.commit([0, 1]))

    assert made._context.length == 4
    assert made._context.num_positions == 10
    bench.call(lambda: made._context.truncate(3))
    assert made._context.num_positions == 5
    bench.call(made.drop)


def test_before_it_is_computed(bench: Any) -> None:
    """There is nothing to read or to commit; it can be discarded."""
    run = bench.new_run()

    def work() -> list[str]:
        context = ContextState.create(run, bench.model)
        context.append([5, 6])
        made = ForwardPass(context, [7], parents=None, positions=None, requests=(), logprobs=True)
        codes = []

        def note_refusals() -> None:
            for action in (made.read, lambda: made.commit([0])):
                with pytest.raises(Err) as caught:
                    action()
                codes.append(caught.value.value["code"])

        note_refusals()
        made.discard()
        assert context.forward is None
        assert made.event.status is EventStatus.READY  # nobody waits for it for ever
        note_refusals()
        made.drop()
        return codes

    assert bench.call(work) == ["unavailable", "unavailable", "cancelled", "cancelled"]


def test_a_failure_ends_it(bench: Any) -> None:
    """The error is what its event, reading and committing say, and the context goes on."""
    run = bench.new_run()
    made = begin(bench, run)
    bench.call(lambda: made.handle(Failed(0, EngineError(ErrorCode.INTERNAL, "broken")), 0))

    assert made.event.error is not None
    assert made._context.forward is None
    assert refused(bench, made.read) == "internal"
    assert refused(bench, lambda: made.commit([])) == "internal"
    bench.call(made.drop)


def test_its_context_is_freed(bench: Any) -> None:
    """A pass that is not computed yet ends as cancelled; nothing more is asked of the engine for it."""
    run = bench.new_run()

    def work() -> ForwardPass:
        context = ContextState.create(run, bench.model)
        context.append([5, 6])
        made = ForwardPass(context, [7], parents=None, positions=None, requests=(), logprobs=True)
        context.drop()
        return made

    made = bench.call(work)
    assert made.event.status is EventStatus.READY
    assert refused(bench, made.read) == "cancelled"
    bench.call(made.drop)


def test_samples_count_as_generated(bench: Any) -> None:
    """In what the run is said to have used."""
    run = bench.new_run()
    made = begin(bench, run, requests=(RowRequest(0, Sampling(seed=1)), RowRequest(0, top=1)))
    bench.wait_until(lambda: made.event.status is EventStatus.READY)

    assert run.counters.generated_tokens == 1
    bench.call(made.drop)
