"""A controller by itself; what it does in a generation is in tests/host/bindings/test_controllers.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.controller_fixture import controller
from tartlet.contract import contract
from tartlet.runtime.controller import MOST_LOG_CHARACTERS, ControllerState
from tartlet.runtime.program import Program
from tartlet.wasm.linker import LinkedComponent
from tartlet_engine.api import EngineError, ErrorCode

if TYPE_CHECKING:
    from conftest import Bench

FOREVER = "(loop $l (br $l))"


class Steered:
    """A controller of a run without a fiber of its own, and what comes of its calls."""

    def __init__(self, bench: Bench, step: str = "(nop)") -> None:
        from wasmtime.component import Component

        engine = bench.supervisor.executor.wasm_engine
        linked = LinkedComponent(engine, Component(engine.engine, controller(step)), {})
        program = Program("steered", "digest", "component", None, linked)
        self.bench = bench
        self.run = bench.new_run()
        self.results: list[Any] = []
        self.failures: list[EngineError] = []
        self.state = bench.call(lambda: ControllerState(self.run, program, self.failures.append, lambda: None))
        bench.call(lambda: self.run.add_controller(self.state))

    def call(self, export: str, *args: Any) -> None:
        """Makes a call, and waits for what comes of it."""
        count = len(self.results) + len(self.failures)
        self.bench.call(lambda: self.state.call(export, *args, then=self.results.append))
        self.bench.wait_until(lambda: len(self.results) + len(self.failures) > count)


def test_the_fixture_keeps_to_the_contract() -> None:
    """The component of these tests is one of the world `controller`."""
    assert contract().world_of(controller()) == "controller"
    contract().check_component(controller(), "controller")


def test_calls_follow_each_other_in_one_instance(bench: Bench) -> None:
    """Its state stays; closing it ends it without a word."""
    steered = Steered(bench)
    steered.call("start", "2", [1])
    steered.call("step", [])
    bench.call(steered.state.close)
    bench.wait_until(lambda: not steered.run._controllers)

    assert steered.results == [{"prompt": None, "log-probabilities": None}, []]
    assert steered.failures == []


def test_lateness_ends_it(bench: Bench) -> None:
    """The error names the limit, and the program; its CPU time stays counted for the run."""
    steered = Steered(bench, FOREVER)
    object.__setattr__(steered.run.limits, "max_step_ms", 30)
    steered.call("start", "1", [1])
    steered.call("step", [])

    (error,) = steered.failures
    assert error.code is ErrorCode.DEADLINE_EXCEEDED
    assert "'steered' failed: it has not answered for 30 ms; max_step_ms" in error.message
    assert steered.run.total_cpu_ns > 5_000_000


def test_the_log_in_an_error_is_bounded(bench: Bench) -> None:
    """However much it has told, only the end is kept."""
    steered = Steered(bench)
    for k in range(300):
        bench.call(lambda k=k: steered.state.print(f"line {k} {'x' * 100}\n"))  # type: ignore[misc]
    bench.call(lambda: steered.state.fail("it is enough"))

    (error,) = steered.failures
    assert "line 299" in error.message
    assert "line 200" not in error.message
    assert len(error.message) < MOST_LOG_CHARACTERS + 300


@pytest.mark.parametrize("limit", [1, 3])
def test_the_number_of_controllers_is_checked(bench: Bench, limit: int) -> None:
    """One that has not ended counts."""
    from tartlet.wasm.host_function import Err

    steered = Steered(bench)
    object.__setattr__(steered.run.limits, "max_controllers", limit)

    if limit == 1:
        with pytest.raises(Err, match="max_controllers allows 1, this would make it 2"):
            bench.call(steered.run.check_controllers)
    else:
        bench.call(steered.run.check_controllers)
    bench.call(steered.state.close)
