"""Constraints of a run, as the bindings handle them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tartlet.runtime.constraint import ConstraintState
from tartlet.runtime.event_table import EventStatus
from tartlet.wasm.host_function import Err
from tartlet_engine.api import ConstraintKind, ErrorCode


@dataclass
class OtherInfo:
    """The facts of another model."""

    name: str = "other"
    features: tuple[str, ...] = ()


@dataclass
class OtherModel:
    """Another model."""

    info: OtherInfo


def code(bench: Any, action: Any) -> str:
    with pytest.raises(Err) as caught:
        bench.call(action)
    return str(caught.value.value["code"])


def compiled(bench: Any, run: Any, text: str = "a+") -> ConstraintState:
    constraint: ConstraintState = bench.call(
        lambda: ConstraintState.of_text(run, bench.model, ConstraintKind.REGEX, text)
    )
    bench.wait_until(lambda: constraint.event.status is EventStatus.READY)
    return constraint


def test_it_is_compiled_then_followed(bench: Any) -> None:
    """Its event becomes ready without an error, and a generation of its model can take it; of another it cannot."""
    run = bench.new_run()
    constraint = compiled(bench, run)

    assert constraint.event.error is None
    assert bench.call(lambda: constraint.engine_id_for(bench.model)) > 0
    other = OtherModel(OtherInfo())
    assert code(bench, lambda: constraint.engine_id_for(other)) == "invalid-argument"


def test_an_error_stays(bench: Any) -> None:
    """What cannot be compiled is the event's outcome, and that of whoever generates with it all the same."""
    run = bench.new_run()
    constraint = compiled(bench, run, "(")

    assert constraint.event.error is not None
    assert constraint.event.error.code is ErrorCode.INVALID_ARGUMENT
    assert code(bench, lambda: constraint.engine_id_for(bench.model)) == "invalid-argument"


def test_before_it_is_compiled_it_is_unavailable(bench: Any) -> None:
    """Nobody waits for it by accident."""
    run = bench.new_run()

    def at_once() -> None:
        ConstraintState.of_text(run, bench.model, ConstraintKind.REGEX, "a").engine_id_for(bench.model)

    assert code(bench, at_once) == "unavailable"


def test_a_model_without_constraints(bench: Any) -> None:
    """It is unsupported, by the model's name."""
    run = bench.new_run()
    other: Any = OtherModel(OtherInfo())

    assert code(bench, lambda: ConstraintState.of_text(run, other, ConstraintKind.REGEX, "a")) == "unsupported"


def test_dropped_it_is_freed_in_the_engine(bench: Any) -> None:
    """Nothing is left of it, whether it was compiled or not."""
    run = bench.new_run()
    constraint = compiled(bench, run)
    early = bench.call(lambda: ConstraintState.of_text(run, bench.model, ConstraintKind.REGEX, "b"))
    bench.call(early.drop)
    bench.call(constraint.drop)
    bench.wait_until(lambda: not bench.engine._core._state.constraints._run_ids)

    assert bench.call(lambda: len(run.handles)) == 0
