from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tartlet.errors import RunError
from tartlet.wasm.host_function import SUSPEND

if TYPE_CHECKING:
    from conftest import Bench


def test_the_program_is_given_once(bench: Bench) -> None:
    """A runner that asks again, or a program that is none of a runner's, is told so."""
    run = bench.new_run(program='{"main": "x"}')

    assert run.take_program() == '{"main": "x"}'
    with pytest.raises(RunError, match="already taken"):
        run.take_program()


def test_slow_work_is_done_elsewhere(bench: Bench) -> None:
    """It runs on a thread that is not the executor's, while the call is suspended."""
    run = bench.new_run()
    threads: list[bool] = []

    def work() -> None:
        threads.append(bench.supervisor.executor.is_current)

    assert bench.call(lambda: run.call_in_worker(work, lambda result: result)) is SUSPEND
    bench.wait_until(lambda: threads == [False])


def test_seeds_are_drawn_in_order(bench: Bench) -> None:
    """Two runs with the same seed draw the same seeds, all different."""
    first, second = bench.new_run(), bench.new_run()

    drawn = [first.draw_seed() for _ in range(5)]

    assert drawn == [second.draw_seed() for _ in range(5)]
    assert len(set(drawn)) == 5
