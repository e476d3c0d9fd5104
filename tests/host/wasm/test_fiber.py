"""Fibers: one instance, one call, and every way in which that can end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tartlet.errors import (
    DeadlockError,
    GuestTrapError,
    InvalidComponentError,
    LimitExceededError,
    RunCancelledError,
    RunError,
)
from tartlet.wasm.fiber import Fiber, FiberLimits, Status
from tartlet.wasm.host_function import SUSPEND, Interfaces
from tartlet.wasm.lower import LoweringError

if TYPE_CHECKING:
    from conftest import Guests, Launched

MS = 1_000_000


def now(_fiber: Fiber, x: int) -> int:
    return x


def ops(
    *,
    now: Callable[..., Any] = now,
    later: Callable[..., Any] = lambda _fiber, _x: SUSPEND,
    tell: Callable[..., Any] = lambda _fiber: None,
) -> Interfaces:
    return {"test:host/ops": {"now": now, "later": later, "tell": tell}}


def resume_soon(fiber: Fiber, x: int) -> Any:
    fiber.executor.post(lambda: fiber.resume(x))
    return SUSPEND


def wait_for_status(launched: Launched, status: Status) -> None:
    """Wait until a fiber has come so far."""
    for _ in range(10_000):
        if launched.fiber.status is status:
            return
        time.sleep(0.001)
    pytest.fail(f"the fiber is {launched.fiber.status}")


def end(guests: Guests, launched: Launched, error: RunError) -> None:
    guests.call(lambda: launched.fiber.end(error))


def test_immediate_host_calls(guests: Guests, ops_text: str) -> None:
    """A host function's result is what the guest sees, and calls are counted."""
    launched = guests.launch(guests.link(ops_text, ops()), "sum-now", 100)

    assert launched.outcome() == sum(range(100))
    assert launched.fiber.num_host_calls == 100


def test_suspending_host_calls(guests: Guests, ops_text: str) -> None:
    """A host call that suspends goes on with the value given to `resume`."""
    assert guests.run(guests.link(ops_text, ops(later=resume_soon)), "sum-later", 100) == sum(range(100))


def test_thousands_of_suspended_fibers(guests: Guests, ops_text: str) -> None:
    """Thousands of fibers can be suspended at once, and each gets its own result."""
    linked = guests.link(ops_text, ops())
    launched = [guests.launch(linked, "sum-later", 1) for _ in range(2000)]
    for one in launched:
        wait_for_status(one, Status.SUSPENDED)

    guests.call(lambda: [one.fiber.resume(i) for i, one in enumerate(launched)])

    assert [one.outcome() for one in launched] == list(range(2000))


def test_spinning_guest_and_its_neighbour(guests: Guests, ops_text: str) -> None:
    """A spinning guest ends at its CPU limit, and a neighbour progresses meanwhile."""
    linked = guests.link(ops_text, ops(later=resume_soon))
    spinner = guests.launch(linked, "spin", limits=FiberLimits(cpu_ns=500 * MS))
    neighbour = guests.launch(linked, "sum-later", 20)

    assert neighbour.outcome() == sum(range(20))
    assert not spinner.has_ended
    error = spinner.outcome()
    assert isinstance(error, LimitExceededError)
    assert (error.code, error.limit, error.allowed) == ("cpu_limit", "max_cpu_ms", 500)
    assert error.used >= 500
    assert spinner.fiber.cpu_ns >= 500 * MS


def test_spinners_share_the_thread(guests: Guests, ops_text: str) -> None:
    """Spinning guests get equal shares of CPU time."""
    linked = guests.link(ops_text, ops())
    spinners = [guests.launch(linked, "spin") for _ in range(4)]
    time.sleep(0.4)
    used = guests.call(lambda: [spinner.fiber.cpu_ns for spinner in spinners])
    for spinner in spinners:
        end(guests, spinner, RunCancelledError("enough"))

    assert min(used) > max(used) / 2


def test_cpu_time_of_short_turns_counts(guests: Guests, ops_text: str) -> None:
    """A guest that never runs long at once reaches its CPU limit too."""
    linked = guests.link(ops_text, ops(later=resume_soon))

    error = guests.run(linked, "sum-later", 1 << 30, limits=FiberLimits(cpu_ns=50 * MS))

    assert error.code == "cpu_limit"


def test_memory_bomb(guests: Guests, ops_text: str) -> None:
    """A guest that traps after its memory could not grow has exceeded its memory limit."""
    error = guests.run(guests.link(ops_text, ops()), "hoard", limits=FiberLimits(memory_bytes=64 << 20))

    assert isinstance(error, LimitExceededError)
    assert (error.code, error.limit, error.allowed) == ("memory_limit", "max_memory_bytes", 64 << 20)


def test_memory_limit_below_the_start(guests: Guests, ops_text: str) -> None:
    """A component that needs more memory than allowed does not start."""
    error = guests.run(guests.link(ops_text, ops()), "sum-now", 1, limits=FiberLimits(memory_bytes=1000))

    assert (error.code, error.used, error.allowed) == ("memory_limit", 65536, 1000)


def test_trap_of_a_limited_run_without_full_memory(guests: Guests, ops_text: str) -> None:
    """Another trap of a run far below its memory limit stays a trap, and memory is not blamed."""
    error = guests.run(guests.link(ops_text, ops()), "trap", limits=FiberLimits(memory_bytes=64 << 20))

    assert isinstance(error, GuestTrapError)
    assert error.hint == ""


def test_deep_recursion(guests: Guests, ops_text: str) -> None:
    """A guest that recurses without end traps, and the error says so."""
    error = guests.run(guests.link(ops_text, ops()), "recurse")

    assert isinstance(error, GuestTrapError)
    assert error.message.startswith("the program recursed too deeply: call stack exhausted\n")


def test_trap(guests: Guests, ops_text: str) -> None:
    """A trap names its reason and where it was."""
    error = guests.run(guests.link(ops_text, ops()), "trap")

    assert isinstance(error, GuestTrapError)
    assert error.message == (
        "the program aborted itself: wasm `unreachable` instruction executed\n  at m!<wasm function 6>"
    )


def test_host_call_limit(guests: Guests, ops_text: str) -> None:
    """A guest may make as many host calls as allowed, and not one more."""
    linked = guests.link(ops_text, ops())

    assert guests.run(linked, "sum-now", 10, limits=FiberLimits(host_calls=10)) == 45
    error = guests.run(linked, "sum-now", 11, limits=FiberLimits(host_calls=10))
    assert (error.code, error.used, error.allowed) == ("host_call_limit", 11, 10)


def test_error_raised_by_a_host_function(guests: Guests, ops_text: str) -> None:
    """A TartletError raised by a host function is the outcome itself."""
    error = DeadlockError("nothing to wait for")

    def fail(_fiber: Fiber, _x: int) -> int:
        raise error

    assert guests.run(guests.link(ops_text, ops(now=fail)), "sum-now", 1) is error


@pytest.mark.parametrize("problem", [ValueError("oops"), KeyboardInterrupt(), SystemExit()])
def test_other_exception_of_a_host_function(guests: Guests, ops_text: str, problem: BaseException) -> None:
    """Any other exception ends the run as an internal error, and no other run."""

    def fail(_fiber: Fiber, _x: int) -> int:
        raise problem

    linked = guests.link(ops_text, ops(now=fail, later=resume_soon))
    neighbour = guests.launch(linked, "sum-later", 50)

    error = guests.run(linked, "sum-now", 1)

    assert error.code == "internal"
    assert type(problem).__name__ in error.message
    assert neighbour.outcome() == sum(range(50))


def test_wrong_result_of_a_host_function(guests: Guests, ops_text: str) -> None:
    """A host function's result of the wrong type ends the run as an internal error."""
    error = guests.run(guests.link(ops_text, ops(now=lambda _fiber, _x: "text")), "sum-now", 1)

    assert error.code == "internal"
    assert "expected u32, got str 'text'" in error.message


def test_wrong_value_for_resume(guests: Guests, ops_text: str) -> None:
    """A value of the wrong type given to `resume` ends the run as an internal error."""

    def resume_wrongly(fiber: Fiber, _x: int) -> Any:
        fiber.executor.post(lambda: fiber.resume("text"))
        return SUSPEND

    assert guests.run(guests.link(ops_text, ops(later=resume_wrongly)), "sum-later", 1).code == "internal"


def test_host_function_ends_its_own_fiber(guests: Guests, ops_text: str) -> None:
    """A host function may end the fiber that calls it."""
    error = RunCancelledError("by itself")

    def end_it(fiber: Fiber, x: int) -> int:
        fiber.end(error)
        return x

    launched = guests.launch(guests.link(ops_text, ops(now=end_it)), "sum-now", 100)

    assert launched.outcome() is error
    assert launched.fiber.num_host_calls == 1


def test_kill_before_the_first_turn(guests: Guests, ops_text: str) -> None:
    """A fiber that is killed before its first turn never runs."""
    linked = guests.link(ops_text, ops())
    launched = guests.not_launched()
    error = RunCancelledError("too late")

    def start_and_end() -> None:
        launched.fiber = Fiber(guests.executor, linked, on_end=launched.on_end)
        launched.fiber.start("sum-now", 5)
        launched.fiber.end(error)
        assert not launched.has_ended

    guests.call(start_and_end)

    assert launched.outcome() is error
    assert launched.fiber.num_host_calls == 0


def test_kill_before_start(guests: Guests, ops_text: str) -> None:
    """A fiber that is killed without having been started ends too."""
    linked = guests.link(ops_text, ops())
    launched = guests.not_launched()
    error = RunCancelledError("never mind")

    def make_and_end() -> None:
        launched.fiber = Fiber(guests.executor, linked, on_end=launched.on_end)
        launched.fiber.end(error)

    guests.call(make_and_end)

    assert launched.outcome() is error


@pytest.mark.parametrize("export", ["sum-later", "tell-then-spin"])
def test_kill_while_suspended(guests: Guests, ops_text: str, export: str) -> None:
    """A suspended fiber can be killed, in a call with a result and in one without."""
    linked = guests.link(ops_text, ops(tell=lambda _fiber: SUSPEND))
    launched = guests.launch(linked, export, *([3] if export == "sum-later" else []))
    wait_for_status(launched, Status.SUSPENDED)
    error = RunCancelledError("killed")

    end(guests, launched, error)

    assert launched.outcome() is error
    assert launched.fiber.num_host_calls == 1


def test_kill_while_spinning(guests: Guests, ops_text: str) -> None:
    """A guest that spins can be killed, alone and among others."""
    linked = guests.link(ops_text, ops())
    spinners = [guests.launch(linked, "spin") for _ in range(3)]
    time.sleep(0.02)
    errors = [RunCancelledError(str(i)) for i in range(3)]
    for spinner, error in zip(spinners, errors, strict=True):
        end(guests, spinner, error)

    assert [spinner.outcome() for spinner in spinners] == errors


def test_first_error_counts(guests: Guests, ops_text: str) -> None:
    """A fiber that is killed twice ends once, with the first error; after that, killing has no effect."""
    launched = guests.launch(guests.link(ops_text, ops()), "sum-later", 1)
    wait_for_status(launched, Status.SUSPENDED)
    first, second = RunCancelledError("first"), RunCancelledError("second")

    guests.call(lambda: (launched.fiber.end(first), launched.fiber.end(second)))

    assert launched.outcome() is first
    end(guests, launched, second)
    assert launched.num_ends == 1
    assert launched.fiber.is_ended


def test_completion_that_comes_too_late(guests: Guests, ops_text: str) -> None:
    """Resuming a fiber that was killed or has ended has no effect."""
    launched = guests.launch(guests.link(ops_text, ops()), "sum-later", 1)
    wait_for_status(launched, Status.SUSPENDED)
    error = RunCancelledError("killed")

    guests.call(lambda: (launched.fiber.end(error), launched.fiber.resume(1)))

    assert launched.outcome() is error
    guests.call(lambda: launched.fiber.resume(1))


def test_resume_of_a_fiber_that_is_not_suspended(guests: Guests, ops_text: str) -> None:
    """Resuming a fiber that is in no host call is a fault of the caller's."""
    launched = guests.launch(guests.link(ops_text, ops()), "spin")
    with pytest.raises(RuntimeError, match="cannot be resumed"):
        guests.call(lambda: launched.fiber.resume(1))
    end(guests, launched, RunCancelledError("enough"))


def test_a_held_fiber_goes_no_further_than_its_host_call(guests: Guests, ops_text: str) -> None:
    """It has its result when it is released, whether the call answered at once or was resumed meanwhile."""

    def hold(fiber: Fiber, x: int) -> int:
        fiber.hold()
        return x + 1

    def hold_and_resume(fiber: Fiber, x: int) -> Any:
        fiber.hold()
        return resume_soon(fiber, x + 1)

    for export, functions in (("sum-now", ops(now=hold)), ("sum-later", ops(later=hold_and_resume))):
        launched = guests.launch(guests.link(ops_text, functions), export, 3)
        for count in range(1, 4):
            wait_for_status(launched, Status.SUSPENDED)
            guests.call(lambda: None)  # what was posted is done, and it is suspended still
            assert (launched.fiber.status, launched.fiber.num_host_calls) == (Status.SUSPENDED, count)
            guests.call(launched.fiber.release)
        assert launched.outcome() == 1 + 2 + 3


def test_a_held_fiber_that_waits_goes_on_when_both_are_over(guests: Guests, ops_text: str) -> None:
    """Releasing one whose call has no result yet does not end that call."""
    launched = guests.launch(guests.link(ops_text, ops()), "sum-later", 1)
    wait_for_status(launched, Status.SUSPENDED)
    guests.call(lambda: (launched.fiber.hold(), launched.fiber.release()))
    assert launched.fiber.status is Status.SUSPENDED
    guests.call(lambda: (launched.fiber.hold(), launched.fiber.resume(5)))
    assert launched.fiber.status is Status.SUSPENDED
    with pytest.raises(RuntimeError, match="cannot be resumed"):
        guests.call(lambda: launched.fiber.resume(6))
    guests.call(launched.fiber.release)

    assert launched.outcome() == 5


@pytest.mark.parametrize("export", ["sum-now", "tell-then-spin"])
def test_kill_while_held(guests: Guests, ops_text: str, export: str) -> None:
    """Who is held can be killed, in a call with a result and in one without."""
    functions = ops(now=lambda fiber, x: (fiber.hold(), x)[1], tell=lambda fiber: fiber.hold())
    launched = guests.launch(guests.link(ops_text, functions), export, *([3] if export == "sum-now" else []))
    wait_for_status(launched, Status.SUSPENDED)
    error = RunCancelledError("killed")
    end(guests, launched, error)

    assert launched.outcome() is error
    assert launched.fiber.num_host_calls == 1


def test_suspend_until(guests: Guests, ops_text: str) -> None:
    """A host call can wait for a point in time."""

    def sleep(fiber: Fiber, x: int) -> Any:
        return fiber.suspend_until(time.monotonic_ns() + 20 * MS, lambda: x + 1)

    began = time.monotonic_ns()

    assert guests.run(guests.link(ops_text, ops(later=sleep)), "sum-later", 2) == 3
    assert time.monotonic_ns() - began >= 40 * MS


def test_kill_while_asleep(guests: Guests, ops_text: str) -> None:
    """A fiber that sleeps for an hour can be killed, and its timer goes with it."""

    def sleep(fiber: Fiber, _x: int) -> Any:
        return fiber.suspend_until(time.monotonic_ns() + 3600_000 * MS, lambda: 0)

    launched = guests.launch(guests.link(ops_text, ops(later=sleep)), "sum-later", 1)
    wait_for_status(launched, Status.SUSPENDED)
    end(guests, launched, RunCancelledError("killed"))
    launched.outcome()

    assert guests.call(lambda: guests.executor.num_timers) == 0


def test_parked_spare(guests: Guests, ops_text: str) -> None:
    """A fiber can be started ahead, suspend, and be given another state and other limits before it goes on."""
    seen = []

    def note(fiber: Fiber, x: int) -> int:
        seen.append(fiber.state)
        return x

    linked = guests.link(ops_text, ops(later=lambda _fiber, _x: SUSPEND, now=note))
    spare = guests.launch(linked, "sum-later", 1, state="nobody", limits=FiberLimits(memory_bytes=1 << 20))
    wait_for_status(spare, Status.SUSPENDED)

    def assign() -> None:
        spare.fiber.state = "somebody"
        spare.fiber.limits = FiberLimits(memory_bytes=2 << 20, cpu_ns=1000 * MS, host_calls=5)
        spare.fiber.resume(7)

    guests.call(assign)

    assert spare.outcome() == 7
    assert spare.fiber.state == "somebody"


def test_memory_limit_raised_while_suspended(guests: Guests) -> None:
    """A memory limit that is changed while the fiber is suspended holds from then on."""
    text = """(component
      (import "test:host/ops" (instance $h (export "later" (func (result u32)))))
      (alias export $h "later" (func $later))
      (core func $later_core (canon lower (func $later)))
      (core module $m
        (import "h" "later" (func $later (result i32)))
        (memory 1)
        (func (export "grow") (result i32) (call $later) (memory.grow)))
      (core instance $i (instantiate $m (with "h" (instance (export "later" (func $later_core))))))
      (func (export "grow") (result u32) (canon lift (core func $i "grow"))))"""
    linked = guests.link(text, {"test:host/ops": {"later": lambda _fiber: SUSPEND}})

    def grow(limit_pages: int) -> int:
        launched = guests.launch(linked, "grow", limits=FiberLimits(memory_bytes=2 * 65536))
        wait_for_status(launched, Status.SUSPENDED)

        def raise_limit() -> None:
            launched.fiber.limits = FiberLimits(memory_bytes=limit_pages * 65536)
            launched.fiber.resume(4)

        guests.call(raise_limit)
        outcome: int = launched.outcome()
        return outcome

    assert grow(limit_pages=5) == 1  # the size before, in pages
    assert grow(limit_pages=4) == 0xFFFFFFFF  # refused


def test_arguments_and_exports_are_checked(guests: Guests, ops_text: str) -> None:
    """What `start` is given is checked at once."""
    linked = guests.link(ops_text, ops())

    with pytest.raises(InvalidComponentError, match="does not export a function 'nothing'; it exports: sum-now, "):
        guests.launch(linked, "nothing")
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        guests.launch(linked, "sum-now", 1, 2)
    with pytest.raises(LoweringError, match="expected u32, got str"):
        guests.launch(linked, "sum-now", "1")


def test_error_in_on_end(guests: Guests, ops_text: str, caplog: pytest.LogCaptureFixture) -> None:
    """An exception in `on_end` is logged and harms nobody."""
    linked = guests.link(ops_text, ops())

    def start() -> None:
        Fiber(guests.executor, linked, on_end=lambda _outcome: 1 / 0).start("sum-now", 1)

    guests.call(start)
    while guests.executor.num_fibers:
        time.sleep(0.001)

    assert guests.run(linked, "sum-now", 3) == 3
    assert "ZeroDivisionError" in caplog.text


def test_nothing_is_left_after_many_runs(guests: Guests, ops_text: str) -> None:
    """After 1,000 runs, some killed, some trapped, no fiber, store or timer is left, and memory is flat."""
    linked = guests.link(ops_text, ops(later=resume_soon))
    process = psutil.Process()

    def one_round(count: int) -> None:
        kinds = itertools.cycle(["sum-now", "sum-later", "trap", "recurse", "spin", "killed"])
        launched = []
        for kind in itertools.islice(kinds, count):
            limits = FiberLimits(cpu_ns=2 * MS, memory_bytes=1 << 20)
            if kind in ("sum-now", "sum-later"):
                launched.append(guests.launch(linked, kind, 5))
            elif kind == "killed":
                launched.append(guests.launch(linked, "sum-later", 1 << 30))
                end(guests, launched[-1], RunCancelledError("killed"))
            else:
                launched.append(guests.launch(linked, kind, limits=limits))
        for one in launched:
            one.outcome()

    one_round(200)
    before = process.memory_info().rss
    for _ in range(10):
        one_round(100)

    assert linked.fibers == {}
    assert guests.executor.num_fibers == 0
    assert guests.call(lambda: guests.executor.num_timers) == 0
    assert process.memory_info().rss - before < 20 << 20


def launch_again_and_again(guests: Guests, ops_text: str, calls: list[tuple[str, int]]) -> tuple[Launched, list[Any]]:
    """A fiber that makes the calls one after the other, and then stays; and the results so far."""
    results: list[Any] = []
    launched = guests.not_launched()

    def on_return(result: Any) -> None:
        results.append(result)
        if len(results) < len(calls):
            launched.fiber.call(*calls[len(results)])

    def start() -> None:
        linked = guests.link(ops_text, ops(later=resume_soon))
        launched.fiber = Fiber(guests.executor, linked, on_end=launched.on_end, on_return=on_return)
        launched.fiber.start(*calls[0])

    guests.call(start)
    return launched, results


def test_several_calls_in_one_instance(guests: Guests, ops_text: str) -> None:
    """Each call has its own arguments and result, suspended or not; the instance stays until the fiber is ended."""
    calls = [("sum-now", 10), ("sum-later", 5), ("sum-now", 3)] * 40
    launched, results = launch_again_and_again(guests, ops_text, calls)
    while guests.call(lambda: len(results)) < len(calls):
        time.sleep(0.001)
    wait_for_status(launched, Status.RETURNED)
    assert not launched.has_ended
    assert launched.fiber.num_host_calls == 18 * 40

    end(guests, launched, RunCancelledError("enough"))

    assert isinstance(launched.outcome(), RunCancelledError)
    assert results == [45, 10, 3] * 40
    assert launched.num_ends == 1


def test_a_trap_in_a_later_call(guests: Guests, ops_text: str) -> None:
    """It ends the fiber, which cannot be called any more."""
    launched, results = launch_again_and_again(guests, ops_text, [("sum-now", 3), ("trap",)])  # type: ignore[list-item]

    assert isinstance(launched.outcome(), GuestTrapError)
    assert results == [3]
    guests.call(lambda: launched.fiber.call("sum-now", 1))
    assert launched.fiber.is_ended


def test_a_later_call_is_killed_in_its_loop(guests: Guests, ops_text: str) -> None:
    """Ending a fiber stops a later call as it does the first."""
    launched, _ = launch_again_and_again(guests, ops_text, [("sum-now", 3), ("spin",)])  # type: ignore[list-item]
    while launched.fiber.cpu_ns < 2 * MS:
        time.sleep(0.001)

    end(guests, launched, RunCancelledError("enough"))

    assert isinstance(launched.outcome(), RunCancelledError)


def test_wrong_arguments_of_a_later_call(guests: Guests, ops_text: str) -> None:
    """They are an error of the caller, and the instance can be called again."""
    launched, results = launch_again_and_again(guests, ops_text, [("sum-now", 3)])
    wait_for_status(launched, Status.RETURNED)

    for args in (("sum-now",), ("sum-now", "x"), ("nothing", 1)):
        with pytest.raises((TypeError, InvalidComponentError)):
            guests.call(lambda args=args: launched.fiber.call(*args))  # type: ignore[misc]
    guests.call(lambda: launched.fiber.call("sum-now", 4))
    wait_for_status(launched, Status.RETURNED)
    while len(results) < 2:
        time.sleep(0.001)
    end(guests, launched, RunCancelledError("enough"))

    assert results == [3, 6]


def test_a_fault_of_who_takes_the_result(guests: Guests, ops_text: str) -> None:
    """It ends the fiber as an internal error."""
    launched = guests.launch(guests.link(ops_text, ops()), "sum-now", 3, on_return=lambda _result: 1 / 0)

    outcome = launched.outcome()
    assert isinstance(outcome, RunError)
    assert outcome.code == "internal"
