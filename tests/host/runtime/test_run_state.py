from typing import Any

from tartlet.errors import RunCancelledError
from tartlet.wasm.host_function import SUSPEND


def test_a_run_that_ends_before_it_has_a_fiber(bench: Any) -> None:
    """It ends once, with its first error, and its caller hears of it."""
    run = bench.new_run()
    first = RunCancelledError("first")

    bench.call(lambda: run.end(first))
    bench.call(lambda: run.end(RunCancelledError("second")))

    assert bench.finished == [run]
    assert run.usage.wall_ms >= 0


def test_what_completes_after_the_end_is_ignored(bench: Any) -> None:
    """A worker's result or an event that comes too late does no harm."""
    run = bench.new_run()
    bench.call(lambda: run.end(RunCancelledError("over")))

    bench.call(lambda: run.complete(lambda: 1 / 0))
    bench.call(run.wake)

    assert bench.finished == [run]


def test_slow_work_is_done_elsewhere(bench: Any) -> None:
    """It runs on a thread that is not the executor's, while the call is suspended."""
    run = bench.new_run()
    threads: list[bool] = []

    def work() -> None:
        threads.append(bench.supervisor.executor.is_current)

    assert bench.call(lambda: run.call_in_worker(work, lambda result: result)) is SUSPEND
    bench.wait_until(lambda: threads == [False])


def test_seeds_are_drawn_in_order(bench: Any) -> None:
    """Two runs with the same seed draw the same seeds, all different."""
    first, second = bench.new_run(), bench.new_run()

    drawn = [first.draw_seed() for _ in range(5)]

    assert drawn == [second.draw_seed() for _ in range(5)]
    assert len(set(drawn)) == 5
