from typing import Any

from tartlet.errors import RunCancelledError


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
