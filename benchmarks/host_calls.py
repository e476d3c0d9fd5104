"""What a call from the guest to the host costs: as such, with the contract's functions, and from Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future

from wasmtime.component import Component

from benchmarks import fixtures
from benchmarks.fixtures import (
    IMMEDIATE,
    MODEL_INFO,
    NOW,
    OPEN_MODEL,
    POLL,
    RUN_INFO,
    SUSPENDING,
    component,
    timed_loop,
)
from benchmarks.hosting import open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import measure_rounds
from benchmarks.settings import Settings
from tartlet.testing import FakeEngine
from tartlet.wasm.executor import Executor
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import SUSPEND, Interfaces
from tartlet.wasm.linker import LinkedComponent
from tartlet.wasm.wasi import wasi_interfaces
from tartlet.wasm.wasm_engine import process_engine

ROUNDS = 11
US = 1000.0  # nanoseconds

EMPTY = {
    "immediate, empty": (component(timed_loop("(call $immediate)"), NOW, IMMEDIATE), at_most(2.0)),
    "suspending, empty": (component(timed_loop("(call $suspending)"), NOW, SUSPENDING), at_most(6.0)),
}
_LOOK = "(call $poll (i32.const 0) (i32.const 0) (i32.const 1) (i64.const 0) (i32.const 16))"
_OPEN = "(call $open_model (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 16))"
CONTRACT = {
    "models.info": (
        component(
            f"{_OPEN} (local.set $model (i32.load (i32.const 20)))"
            + timed_loop("(call $model_info (local.get $model) (i32.const 32))"),
            NOW,
            OPEN_MODEL,
            MODEL_INFO,
        ),
        at_most(10.0),
    ),
    "runs.info": (component(timed_loop("(call $run_info (i32.const 32))"), NOW, RUN_INFO), at_most(10.0)),
    "events.poll, only looks": (component(timed_loop(_LOOK), NOW, POLL), at_most(10.0)),
    "events.poll, waits 1 ns": (component(timed_loop(fixtures.sleep(1)), NOW, POLL), None),
}
PYTHON = ("poll, only looks", "poll, waits 1 ns", "models.info", "len(context)", "run.info()", "await sleep(1 ns)")


def measure(settings: Settings) -> Iterator[Row]:
    """Give the microseconds per call."""
    yield from _measure_empty(settings)
    engine = FakeEngine()
    with open_host(engine) as host:
        calls = settings.scaled(20_000, 200)
        programs = {name: host.load(component) for name, (component, _) in CONTRACT.items()}
        rounds = measure_rounds(
            lambda _: {name: host.run(program, calls)[0] / calls / US for name, program in programs.items()},
            settings.scaled(ROUNDS, 1),
            settings,
        )
        for name, (_, goal) in CONTRACT.items():
            yield row(rounds, name, "us", goal, label=f"Wasm: {name}")
        python = host.load("calls.py")
        rounds = measure_rounds(
            lambda _: host.run(python, {"n": settings.scaled(2000, 20)}), settings.scaled(ROUNDS, 1), settings
        )
        for name in PYTHON:
            yield row(rounds, name, "us", label=f"Python: {name}")
    engine.close()


def _measure_empty(settings: Settings) -> Iterator[Row]:
    """Only the Wasm layer: host functions that do nothing."""
    calls = settings.scaled(100_000, 500)
    executor = Executor(process_engine())
    linked = {
        name: LinkedComponent(process_engine(), Component(process_engine().engine, data), _empty_interfaces())
        for name, (data, _) in EMPTY.items()
    }
    rounds = measure_rounds(
        lambda _: {name: _run(executor, entry, calls) / calls / US for name, entry in linked.items()},
        settings.scaled(ROUNDS, 1),
        settings,
    )
    executor.close()
    for name, (_, goal) in EMPTY.items():
        yield row(rounds, name, "us", goal, label=f"Wasm: {name}")


def _empty_interfaces() -> Interfaces:
    def suspending(fiber: Fiber) -> object:
        fiber.executor.post(fiber.resume)
        return SUSPEND

    empty = {"immediate": lambda fiber: None, "suspending": suspending}
    return {**wasi_interfaces(), "bench:calls/empty": empty}


def _run(executor: Executor, linked: LinkedComponent, number: int) -> float:
    """What a component records when it is run on a bare fiber."""
    future: Future[tuple[bool, str]] = Future()
    executor.post(lambda: Fiber(executor, linked, on_end=future.set_result).start("run", str(number)))
    is_ok, text = future.result()
    assert is_ok
    return float(json.loads(text)[0])
