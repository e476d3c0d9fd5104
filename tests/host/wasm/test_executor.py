"""The executor: order, timers, sleep, and its end."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tartlet.errors import RunCancelledError
from tartlet.wasm.executor import Executor
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import SUSPEND
from tartlet.wasm.wasm_engine import WasmEngine

if TYPE_CHECKING:
    from conftest import Guests

MS = 1_000_000


def test_posted_calls_run_in_order_on_the_executors_thread(guests: Guests) -> None:
    """Calls run in the order posted, all on one thread that is not the main one."""
    seen: list[tuple[int, int]] = []
    for i in range(100):
        guests.executor.post(lambda i=i: seen.append((i, threading.get_ident())))
    thread = guests.call(threading.get_ident)

    assert seen == [(i, thread) for i in range(100)]
    assert thread != threading.main_thread().ident


def test_failing_call(guests: Guests, caplog: pytest.LogCaptureFixture) -> None:
    """An exception in a posted call or a timer is logged, and the thread goes on."""
    guests.executor.post(lambda: 1 / 0)
    guests.call(lambda: guests.executor.at(0, lambda: [][0]))
    for _ in range(2):
        guests.call(lambda: None)

    assert "ZeroDivisionError" in caplog.text
    assert "IndexError" in caplog.text


def test_timers_run_at_their_time(guests: Guests) -> None:
    """Timers run in the order of their deadlines and not before; a cancelled one does not run."""
    done = threading.Event()
    seen: list[str] = []
    began_ns = time.monotonic_ns()

    def set_timers() -> None:
        guests.executor.at(began_ns + 30 * MS, lambda: (seen.append("last"), done.set()))
        guests.executor.at(began_ns + 10 * MS, lambda: seen.append("first"))
        guests.executor.at(began_ns + 20 * MS, lambda: seen.append("never")).cancel()
        guests.executor.at(1 << 80, lambda: seen.append("in centuries"))

    guests.executor.post(set_timers)
    assert done.wait(60)

    assert seen == ["first", "last"]
    assert time.monotonic_ns() - began_ns >= 30 * MS


def test_idle_executor_burns_no_cpu(guests: Guests, ops_text: str) -> None:
    """With nothing to run but a far timer and a suspended fiber, neither the executor nor the ticker uses CPU time."""
    linked = guests.link(ops_text, {"test:host/ops": {"later": lambda _fiber, _x: SUSPEND}})
    launched = guests.launch(linked, "sum-later", 1)
    guests.call(lambda: guests.executor.at(time.monotonic_ns() + 3600_000 * MS, lambda: None))
    for _ in range(1000):
        if guests.wasm_engine.ticker.is_parked:
            break
        time.sleep(0.01)
    assert guests.wasm_engine.ticker.is_parked

    before = psutil.Process().cpu_times().user
    time.sleep(0.3)

    assert psutil.Process().cpu_times().user - before < 0.15
    guests.call(lambda: launched.fiber.end(RunCancelledError("enough")))


def test_woken_fibers_come_before_sliced_ones(guests: Guests, ops_text: str) -> None:
    """Beside spinning guests, a fiber that suspends often is served many times in each of their turns."""

    def resume_soon(fiber: Fiber, x: int) -> Any:
        fiber.executor.post(lambda: fiber.resume(x))
        return SUSPEND

    linked = guests.link(ops_text, {"test:host/ops": {"later": resume_soon}})
    spinners = [guests.launch(linked, "spin") for _ in range(4)]
    sociable = guests.launch(linked, "sum-later", 200)
    sociable.outcome()
    turns = guests.call(lambda: sum(spinner.fiber.cpu_ns for spinner in spinners) / MS)
    for spinner in spinners:
        guests.call(lambda spinner=spinner: spinner.fiber.end(RunCancelledError("enough")))

    assert turns < 200  # in plain round robin, the spinners would have had 800 turns


def test_several_executors(wasm_engine: WasmEngine, guests: Guests, ops_text: str) -> None:
    """Two executors run fibers of one linked component at the same time, each on its own thread."""
    threads: dict[str, set[int]] = {"one": set(), "two": set()}

    def now(fiber: Fiber, x: int) -> int:
        threads[fiber.state].add(threading.get_ident())
        return x

    linked = guests.link(ops_text, {"test:host/ops": {"now": now}})
    other = Executor(wasm_engine, "other")
    ended = threading.Event()
    outcomes: list[Any] = []

    def start_other() -> None:
        def on_end(outcome: Any) -> None:
            outcomes.append(outcome)
            ended.set()

        Fiber(other, linked, state="two", on_end=on_end).start("sum-now", 20_000)

    other.post(start_other)
    outcomes.append(guests.run(linked, "sum-now", 20_000, state="one"))
    assert ended.wait(60)
    other.close()

    assert outcomes == [sum(range(20_000)) % 2**32] * 2
    assert [len(ids) for ids in threads.values()] == [1, 1]
    assert threads["one"] != threads["two"]


def test_close_ends_all_fibers(wasm_engine: WasmEngine, guests: Guests, ops_text: str) -> None:
    """Closing ends spinning, suspended and queued fibers as cancelled, and then the thread; no other starts."""
    linked = guests.link(ops_text, {"test:host/ops": {"later": lambda _fiber, _x: SUSPEND}})
    executor = Executor(wasm_engine, "closing")
    outcomes: list[Any] = []
    refusals: list[str] = []

    def start_another(outcome: Any) -> None:
        outcomes.append(outcome)
        with pytest.raises(RunCancelledError) as caught:
            Fiber(executor, linked).start("spin")
        refusals.append(caught.value.message)

    def start() -> None:
        for export, args in (("spin", ()), ("sum-later", (1,)), ("spin", ())):
            Fiber(executor, linked, on_end=start_another).start(export, *args)

    executor.post(start)
    executor.close()

    assert [type(outcome) for outcome in outcomes] == [RunCancelledError] * 3
    assert refusals == ["the executor is closed"] * 3
    assert not [thread for thread in threading.enumerate() if thread.name == "closing"]


def test_interpreter_exit_beside_a_spinning_guest() -> None:
    """A program that ends without closing its executor ends all the same, while a guest spins and another waits."""
    program = """if True:
        import threading
        from wasmtime.component import Component
        from tartlet.wasm.executor import Executor
        from tartlet.wasm.fiber import Fiber
        from tartlet.wasm.linker import LinkedComponent
        from tartlet.wasm.wasm_engine import process_engine
        engine = process_engine()
        text = '''(component
          (core module $m (func (export "spin") (loop $forever (br $forever))))
          (core instance $i (instantiate $m))
          (func (export "spin") (canon lift (core func $i "spin"))))'''
        linked = LinkedComponent(engine, Component(engine.engine, text), {})
        executor = Executor(engine)
        started = threading.Event()
        executor.post(lambda: (Fiber(executor, linked, on_end=print).start("spin"), started.set()))
        started.wait()
        print("main ends")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines() == ["main ends", "the host is closing"]
    assert done.stderr == ""
