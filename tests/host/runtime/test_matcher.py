"""Matchers of a run, as the bindings handle them."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet.runtime.constraint import ConstraintState
from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.matcher import MatcherState
from tartlet.wasm.host_function import Err
from tartlet_engine.api import ConstraintKind, EngineError, ErrorCode, Failed, MatcherMoved


def begun(bench: Any, run: Any) -> MatcherState:
    constraint = bench.call(lambda: ConstraintState.of_text(run, bench.model, ConstraintKind.REGEX, "a+"))
    bench.wait_until(lambda: constraint.event.status is EventStatus.READY)
    matcher: MatcherState = bench.call(lambda: MatcherState(constraint))
    bench.wait_until(lambda: matcher.event.status is EventStatus.READY)
    return matcher


def test_an_answer_to_an_earlier_move_is_not_taken_for_the_last_ones(bench: Any) -> None:
    """What is on its way when it is moved on says nothing about where it comes to."""
    run = bench.new_run()
    matcher = begun(bench, run)
    early = bench.call(matcher.place)

    def move_and_hear_of_the_last() -> bool:
        matcher.move(0, [97])
        matcher.handle(early, 0)
        return matcher.event.status is EventStatus.PENDING

    assert bench.call(move_and_hear_of_the_last)
    bench.wait_until(lambda: matcher.event.status is EventStatus.READY)
    assert bench.call(matcher.place).num_moves == 1


def test_a_failure_stays(bench: Any) -> None:
    """It is the event's outcome, and the answer to everything that is asked afterwards."""
    run = bench.new_run()
    matcher = begun(bench, run)
    error = EngineError(ErrorCode.QUOTA_EXCEEDED, "too many")
    bench.call(lambda: matcher.handle(Failed(1, error), 0))

    assert matcher.event.error == error
    for action in (matcher.place, lambda: matcher.move(0, [])):
        with pytest.raises(Err) as caught:
            bench.call(action)
        assert caught.value.value["code"] == "quota-exceeded"


def test_dropped_it_is_freed_in_the_engine(bench: Any) -> None:
    """Nothing is left of it or of its fork."""
    run = bench.new_run()
    matcher = begun(bench, run)
    fork = bench.call(lambda: MatcherState(matcher.constraint, matcher))
    bench.wait_until(lambda: isinstance(fork._moved, MatcherMoved))
    bench.call(matcher.drop)
    bench.call(fork.drop)
    bench.wait_until(lambda: not bench.engine._core._state.matchers._run_ids)
    bench.call(matcher.constraint.drop)

    assert bench.call(lambda: len(run.handles)) == 0
