from typing import Any

import pytest

from tartlet.runtime.context import ContextState
from tartlet.runtime.generation import GenerationState
from tartlet.wasm.host_function import Err
from tartlet_engine.api import EngineError, ErrorCode, Failed, Sampling, Stop


def test_own_pages_leave_out_what_a_fork_shares(bench: Any) -> None:
    """A fork needs pages for what it appends, and for its own copy of a last page that is not full."""
    run = bench.new_run()

    def work() -> list[int]:
        parent = ContextState.create(run, bench.model)
        parent.append([1] * 40)
        fork = parent.fork()
        before = fork.num_own_pages
        fork.append([1] * 10)
        after = fork.num_own_pages
        fork.truncate(16)
        return [parent.num_own_pages, before, after, fork.num_own_pages]

    assert bench.call(work) == [3, 1, 2, 0]


def test_a_fork_of_a_context_that_generates_has_whole_tokens(bench: Any) -> None:
    """The fork has exactly the tokens that the host has seen, whatever the engine has done since."""
    run = bench.new_run()

    def start() -> ContextState:
        context = ContextState.create(run, bench.model)
        context.append([120] * 1000)
        GenerationState(context, Sampling(seed=0), Stop(), interval_ns=0)
        return context

    context = bench.call(start)
    bench.wait_until(lambda: context.length > 1000)

    assert bench.call(lambda: context.fork().tokens == context.tokens)


def test_idle_actions_come_in_order(bench: Any) -> None:
    """What waits for the end of a generation is done in the order asked for; a dropped context is freed after that."""
    run = bench.new_run()
    done: list[str] = []

    def start() -> ContextState:
        context = ContextState.create(run, bench.model)
        context.append([120])
        GenerationState(context, Sampling(seed=0), Stop(), interval_ns=None)
        context.call_when_idle(lambda: done.append("first"))
        context.call_when_idle(lambda: done.append("second"))
        context.drop()
        return context

    context = bench.call(start)
    bench.wait_until(lambda: context.generation is None)

    assert done == ["first", "second"]
    bench.call(lambda: None)
    bench.engine.check_integrity()
    assert bench.engine.stats().contexts == 0


def test_a_context_that_the_engine_gave_up(bench: Any) -> None:
    """After the engine refused something with it, a context answers with that error."""
    run = bench.new_run()

    def work() -> None:
        context = ContextState.create(run, bench.model)
        context.check_usable()
        context.handle(Failed(context.context_id, EngineError(ErrorCode.INTERNAL, "broken")), 0)
        context.check_usable()

    with pytest.raises(Err) as caught:
        bench.call(work)
    assert caught.value.value == {"code": "internal", "message": "broken", "hint": ""}
