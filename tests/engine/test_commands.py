"""Commands: what cannot be carried out fails alone, by the id that its sender knows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tartlet_engine.api import (
    AppendTokens,
    CancelGeneration,
    CloseRun,
    CreateContext,
    ErrorCode,
    Failed,
    FlushContext,
    ForkContext,
    FreeContext,
    Generate,
    OpenRun,
    RunClosed,
    Sampling,
    Stop,
    TruncateContext,
)


@pytest.mark.parametrize(
    ("command", "failed_id", "code"),
    [
        (OpenRun(1), 1, ErrorCode.ALREADY_EXISTS),
        (CreateContext(2, 1), 2, ErrorCode.ALREADY_EXISTS),
        (CreateContext(50, 99), 50, ErrorCode.NOT_FOUND),
        (AppendTokens(99, (5,)), 99, ErrorCode.NOT_FOUND),
        (AppendTokens(2, (5, 512)), 2, ErrorCode.INVALID_ARGUMENT),
        (AppendTokens(2, (5,) * 17), 2, ErrorCode.CONTEXT_OVERFLOW),
        (ForkContext(99, 50, 0), 50, ErrorCode.NOT_FOUND),
        (ForkContext(2, 50, 5), 50, ErrorCode.INVALID_ARGUMENT),
        (ForkContext(2, 50, -1), 50, ErrorCode.INVALID_ARGUMENT),
        (ForkContext(2, 2, 1), 2, ErrorCode.ALREADY_EXISTS),
        (TruncateContext(2, 5), 2, ErrorCode.INVALID_ARGUMENT),
        (FlushContext(99, 60), 60, ErrorCode.NOT_FOUND),
        (Generate(70, 99, Sampling(0)), 70, ErrorCode.NOT_FOUND),
        (Generate(70, 3, Sampling(0)), 70, ErrorCode.INVALID_ARGUMENT),
        (Generate(70, 2, Sampling(0), Stop(max_tokens=0)), 70, ErrorCode.INVALID_ARGUMENT),
    ],
)
def test_refused_commands(hash_engine: Any, command: Any, failed_id: int, code: ErrorCode) -> None:
    """A refused command changes nothing, and a neighbour goes on."""
    driver = hash_engine(context_len=20)
    driver.do(OpenRun(1), CreateContext(2, 1), AppendTokens(2, (5, 6, 7, 8)), CreateContext(3, 1))
    driver.do(Generate(10, 2, Sampling(0, temperature=0.0), Stop(max_tokens=3, ignore_eos=True)))
    driver.settle()
    driver.truncate(2, 4)
    driver.events.clear()
    driver.do(command)

    (event,) = driver.events
    assert isinstance(event, Failed)
    assert (event.failed_id, event.error.code) == (failed_id, code)
    assert driver.core.stats().contexts == 2
    driver.do(Generate(71, 2, Sampling(0, temperature=0.0), Stop(max_tokens=3)))
    driver.settle()
    assert len(driver.tokens(71)) == 3


@pytest.mark.parametrize(
    "command", [CloseRun(99), FreeContext(99), CancelGeneration(99)], ids=lambda command: type(command).__name__
)
def test_ending_what_has_ended_is_no_error(hash_engine: Any, command: Any) -> None:
    """Closing, freeing and cancelling what is not there does nothing."""
    driver = hash_engine()
    driver.do(command)

    assert driver.events == []


def test_a_busy_context_is_refused(hash_engine: Any) -> None:
    """While a generation runs on a context, only a fork is allowed."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), [5, 6])
    generation = driver.generate(context, max_tokens=5)
    driver.append(context, [7])
    driver.truncate(context, 0)
    refused = [context, context, driver.flush(context), driver.generate(context)]
    driver.fork(context, 2)
    driver.settle()

    assert [failed.failed_id for failed in driver.failures] == refused
    assert {failed.error.code for failed in driver.failures} == {ErrorCode.UNAVAILABLE}
    assert len(driver.tokens(generation)) == 5


@pytest.mark.parametrize(("limits", "have"), [({}, 8), ({"max_pages": 3}, 3)])
def test_what_can_never_fit_is_refused_at_once(hash_engine: Any, limits: dict[str, int], have: int) -> None:
    """A context of more pages than there are, or than its run may hold: need and have are in the message."""
    driver = hash_engine(num_pages=8, page_size=4)
    context = driver.create(driver.open_run(**limits), [5] * 4 * have)
    driver.append(context, [6])
    for failed_id in (driver.generate(context), driver.flush(context)):
        error = driver.failure(failed_id)
        assert error.code == ErrorCode.KV_EXHAUSTED
        assert f"needs {have + 1} pages" in error.message
        assert f"{have}" in error.message
    assert not driver.core.has_work
    assert driver.limits_reached == []


def test_close_run_frees_everything(hash_engine: Any) -> None:
    """A run with contexts in every state leaves nothing, and tells of nothing."""
    driver = hash_engine(num_pages=40, max_batch_tokens=8)
    run_id, other = driver.open_run(), driver.open_run()
    parent = driver.create(run_id, range(30))
    for fork in [driver.fork(parent, 30) for _ in range(3)]:
        driver.generate(fork, max_tokens=5)
    driver.generate(driver.create(run_id, range(10)), max_tokens=50)
    driver.flush(driver.create(run_id, range(20)))
    kept = driver.generate(driver.create(other, range(10)), max_tokens=5)
    driver.step(3)
    driver.events.clear()
    driver.close_run(run_id)
    assert driver.events == []
    driver.settle()

    stats = driver.core.stats()
    assert (stats.runs, stats.contexts, stats.pages_held) == (1, 1, -(-14 // 4))
    assert len(driver.tokens(kept)) > 0


def test_freeing_a_context_ends_its_generation_silently(hash_engine: Any) -> None:
    """No event follows, and the pages are free."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), range(10))
    driver.generate(context)
    driver.step(4)
    driver.events.clear()
    driver.free(context)
    driver.settle()

    assert driver.events == []
    assert driver.num_held == 0


def test_a_fault_in_a_command_is_contained(hash_engine: Any, hash_text: Callable[..., list[int]]) -> None:
    """A command with a value of the wrong type fails as internal, and the engine goes on."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), [5])
    driver.do(AppendTokens(context, ("no token",)))  # type: ignore[arg-type]
    generation = driver.generate(context, max_tokens=2)
    driver.settle()

    assert driver.failure(context).code == ErrorCode.INTERNAL
    assert driver.tokens(generation) == hash_text([5], 2)


@pytest.mark.parametrize("tenant", ["", "\ud800", "x" * 257])
def test_what_no_tenant_can_be_called(hash_engine: Any, tenant: str) -> None:
    """The run is refused at its start, by what is wrong, and not when it saves something."""
    driver = hash_engine()
    run = driver.open_run(tenant=tenant)

    assert driver.failure(run).code is ErrorCode.INVALID_ARGUMENT
    assert driver.failure(run).message.startswith("tenant must")
    assert driver.core.stats().runs == 0


def test_closing_a_run_tells_its_totals_if_asked(hash_engine: Any) -> None:
    """Both generations' prompts, all tokens, and the time of the pages, up to when they are free."""
    driver = hash_engine(page_size=4)
    began_ns = time.monotonic_ns()
    run_id = driver.open_run()
    context_id = driver.create(run_id, [5] * 9)
    for _ in range(2):
        driver.generate(context_id, max_tokens=3)
        driver.settle()
    driver.do(CloseRun(run_id, tells_totals=True))
    most_ns = 4 * (time.monotonic_ns() - began_ns)

    (closed,) = [event for event in driver.events if isinstance(event, RunClosed)]
    assert (closed.run_id, closed.prompt_tokens, closed.generated_tokens) == (run_id, 9 + 12, 6)
    assert 0 < closed.page_ns <= most_ns
    assert driver.num_held == 0


def test_pages_are_told_of_when_their_number_changes(hash_engine: Any) -> None:
    """As they grow, as they shrink, and not at all of a run that is closed or of what only one step sees."""
    driver = hash_engine(page_size=4)
    run_id = driver.open_run()
    context_id = driver.create(run_id, [5] * 9)
    nothing = driver.pages_held.get(run_id)
    driver.generate(context_id, max_tokens=8)
    driver.settle()
    grown = driver.pages_held[run_id]
    driver.truncate(context_id, 4)
    shrunk = driver.pages_held[run_id]
    driver.close_run(run_id)

    assert nothing is None
    assert (grown.num_pages, shrunk.num_pages) == (4, 1)
    assert shrunk.page_ns == grown.page_ns + 4 * (shrunk.at_ns - grown.at_ns)
    assert driver.pages_held[run_id] == shrunk
