"""Fixtures that run components given as text: no toolchain is needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from wasmtime.component import Component

from tartlet.wasm.executor import Executor
from tartlet.wasm.fiber import Fiber, FiberLimits
from tartlet.wasm.host_function import Interfaces
from tartlet.wasm.linker import LinkedComponent
from tartlet.wasm.wasm_engine import WasmEngine, process_engine

PATIENCE_SECONDS = 60


class Launched:
    """A fiber that was started from the test's thread, and its end."""

    def __init__(self) -> None:
        self.fiber: Fiber
        self.num_ends = 0
        self._outcome: Any = None
        self._ended = threading.Event()

    def on_end(self, outcome: Any) -> None:
        """Take the outcome, on the executor's thread."""
        self.num_ends += 1
        self._outcome = outcome
        self._ended.set()

    @property
    def has_ended(self) -> bool:
        """Whether there is an outcome."""
        return self._ended.is_set()

    def outcome(self) -> Any:
        """Wait for the outcome."""
        assert self._ended.wait(PATIENCE_SECONDS), "the fiber has not ended"
        return self._outcome


class Guests:
    """Runs components on one executor."""

    def __init__(self, wasm_engine: WasmEngine, executor: Executor) -> None:
        self.wasm_engine = wasm_engine
        self.executor = executor

    def link(self, text: str, interfaces: Interfaces | None = None) -> LinkedComponent:
        """Compile a component and bind its imports."""
        return LinkedComponent(self.wasm_engine, Component(self.wasm_engine.engine, text), interfaces or {})

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function on the executor's thread, and return its result or raise its exception."""
        done = threading.Event()
        results: list[Any] = []

        def run() -> None:
            try:
                results.append((True, function()))
            except BaseException as problem:
                results.append((False, problem))
            done.set()

        self.executor.post(run)
        assert done.wait(PATIENCE_SECONDS)
        is_ok, value = results[0]
        if not is_ok:
            raise value
        return value

    def not_launched(self) -> Launched:
        """Give what a test needs to make and start a fiber itself."""
        return Launched()

    def launch(
        self, linked: LinkedComponent, export: str, *args: Any, limits: FiberLimits | None = None, **attributes: Any
    ) -> Launched:
        """Start a fiber; `attributes` are set on it."""
        launched = Launched()

        def start() -> None:
            launched.fiber = Fiber(self.executor, linked, limits=limits, on_end=launched.on_end)
            for name, value in attributes.items():
                setattr(launched.fiber, name, value)
            launched.fiber.start(export, *args)

        self.call(start)
        return launched

    def run(self, linked: LinkedComponent, export: str, *args: Any, **options: Any) -> Any:
        """Start a fiber and wait for its outcome."""
        return self.launch(linked, export, *args, **options).outcome()


@pytest.fixture(scope="session")
def wasm_engine() -> WasmEngine:
    """The engine of this process."""
    return process_engine()


@pytest.fixture
def executor(wasm_engine: WasmEngine) -> Iterator[Executor]:
    """An executor of this test's own, which leaves no fiber behind."""
    executor = Executor(wasm_engine)
    yield executor
    executor.close()
    assert executor.num_fibers == 0


@pytest.fixture
def guests(wasm_engine: WasmEngine, executor: Executor) -> Guests:
    """Runs components on this test's executor."""
    return Guests(wasm_engine, executor)


@pytest.fixture(scope="session")
def ops_text() -> str:
    """A component that calls `test:host/ops`: `now` and `later`, each u32 -> u32, and `tell`, which returns nothing.

    Its exports: `sum-now` and `sum-later` (n calls, the sum of the results), `spin` (for ever), `trap`, `recurse`
    (without end), `hoard` (memory, without end, then a trap), `tell-then-spin`.
    """
    return """(component
      (import "test:host/ops" (instance $h
        (export "now" (func (param "x" u32) (result u32)))
        (export "later" (func (param "x" u32) (result u32)))
        (export "tell" (func))))
      (alias export $h "now" (func $now))
      (alias export $h "later" (func $later))
      (alias export $h "tell" (func $tell))
      (core func $now_core (canon lower (func $now)))
      (core func $later_core (canon lower (func $later)))
      (core func $tell_core (canon lower (func $tell)))
      (core module $m
        (import "h" "now" (func $now (param i32) (result i32)))
        (import "h" "later" (func $later (param i32) (result i32)))
        (import "h" "tell" (func $tell))
        (memory 1)
        (func (export "sum-now") (param $n i32) (result i32) (local $i i32) (local $sum i32)
          (loop $next
            (local.set $sum (i32.add (local.get $sum) (call $now (local.get $i))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $i) (local.get $n))))
          (local.get $sum))
        (func (export "sum-later") (param $n i32) (result i32) (local $i i32) (local $sum i32)
          (loop $next
            (local.set $sum (i32.add (local.get $sum) (call $later (local.get $i))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $i) (local.get $n))))
          (local.get $sum))
        (func $spin (export "spin") (loop $forever (br $forever)))
        (func (export "trap") unreachable)
        (func $recurse (export "recurse") (call $recurse) (call $recurse))
        (func (export "hoard") (loop $more (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
        unreachable) (func (export "tell-then-spin") (call $tell) (call $spin)))
      (core instance $i (instantiate $m (with "h" (instance
        (export "now" (func $now_core)) (export "later" (func $later_core)) (export "tell" (func $tell_core))))))
      (func (export "sum-now") (param "n" u32) (result u32) (canon lift (core func $i "sum-now")))
      (func (export "sum-later") (param "n" u32) (result u32) (canon lift (core func $i "sum-later")))
      (func (export "spin") (canon lift (core func $i "spin")))
      (func (export "trap") (canon lift (core func $i "trap")))
      (func (export "recurse") (canon lift (core func $i "recurse")))
      (func (export "hoard") (canon lift (core func $i "hoard")))
      (func (export "tell-then-spin") (canon lift (core func $i "tell-then-spin"))))"""
