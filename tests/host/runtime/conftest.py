"""Runs without a program, whose contexts and generations the tests handle as the bindings do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TypeVar

import pytest

from tartlet.limits import Limits
from tartlet.runtime.channel import Channel, LoopWaker
from tartlet.runtime.model import ModelHandle
from tartlet.runtime.run_state import RunState
from tartlet.runtime.supervisor import Supervisor
from tartlet.testing import FakeEngine
from tartlet.wasm.wasm_engine import WasmEngine
from tartlet_engine.api import OpenRun

T = TypeVar("T")


class Bench:
    """A supervisor on a fake engine, and a way onto the executor's thread."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.loop = asyncio.new_event_loop()
        self.supervisor = Supervisor(WasmEngine(), engine)
        self.link = self.supervisor.services.link
        self.model = ModelHandle(next(iter(engine.models.values())), engine.text("fake"))
        self.finished: list[RunState] = []

    def call(self, action: Callable[[], T]) -> T:
        """What `action` returns or raises on the executor's thread."""
        future: Future[T] = Future()

        def work() -> None:
            try:
                future.set_result(action())
            except BaseException as error:
                future.set_exception(error)

        self.supervisor.executor.post(work)
        return future.result(timeout=10)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Waits until a condition holds on the executor's thread."""
        wait = threading.Event()
        for _ in range(10_000):
            if self.call(condition):
                return
            wait.wait(0.001)
        raise AssertionError("it did not come true")

    def new_run(self, limits: Limits | None = None, program: str | None = None) -> RunState:
        """A run that has no fiber; the engine knows it."""
        run = RunState(
            self.supervisor.services,
            Channel(LoopWaker(self.loop)),
            run_id="run_1",
            inferlet="test",
            tenant="local",
            limits=limits or Limits(),
            seed=7,
            program=program,
            on_finish=self.finished.append,
        )
        self.call(lambda: run.submit(OpenRun(run.engine_id)))
        return run


@pytest.fixture
def bench() -> Iterator[Bench]:
    engine = FakeEngine()
    bench = Bench(engine)
    yield bench
    bench.supervisor.close()
    engine.check_integrity()
    engine.close()
    bench.loop.close()
