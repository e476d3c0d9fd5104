"""How long forward passes take, on a device that the host waits for and on one that works beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tartlet_engine.costs import Costs
from tartlet_engine.step_timer import StepTimer


class Measured(Costs):
    """Costs that remember what they were told."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[int, float]] = []

    def note_step(self, num_tokens: int, seconds: float) -> None:
        """Remember it."""
        self.steps.append((num_tokens, seconds))


@pytest.fixture
def measured() -> Measured:
    return Measured()


def make_timer(measured: Measured, is_beside: bool) -> tuple[StepTimer, list[float]]:
    """A timer, and the time that it reads."""
    now = [0.0]
    return StepTimer(measured, is_beside=is_beside, clock=lambda: now[0]), now


def test_where_the_host_waits_launching_is_computing(measured: Measured) -> None:
    """What takes time after the pass, such as sampling, does not count."""
    timer, now = make_timer(measured, is_beside=False)
    timer.begin()
    now[0] = 2.0
    timer.launched(64)
    now[0] = 9.0
    timer.waited()

    assert measured.steps == [(64, 2.0)]


def test_beside_the_host_the_wait_counts(measured: Measured) -> None:
    """A pass takes until its results are there, and passes that nobody waits for count with the next one."""
    timer, now = make_timer(measured, is_beside=True)
    for at in (1.0, 2.0):
        now[0] = at
        timer.begin()
        timer.launched(100)
    assert measured.steps == []
    now[0] = 5.0
    timer.waited()
    timer.waited()

    assert measured.steps == [(200, 4.0)]


def test_what_is_forgotten_is_not_measured(measured: Measured) -> None:
    """Time in which nobody waits for anything is not taken for computing."""
    timer, now = make_timer(measured, is_beside=True)
    timer.begin()
    timer.launched(100)
    timer.forget()
    now[0] = 1000.0
    timer.begin()
    timer.launched(50)
    now[0] = 1001.0
    timer.waited()

    assert measured.steps == [(50, 1.0)]


def test_a_step_is_measured_until_its_tokens_are_there(
    hash_engine: Callable[..., Any], measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's steps on such a device include the wait, and leave out what comes between demands."""
    waits: list[int] = []
    monkeypatch.setattr(StepTimer, "waited", _counting(StepTimer.waited, waits, measured))
    driver = hash_engine(costs=measured, runs_ahead=True, max_batch_tokens=64)
    run = driver.open_run()
    driver.flush(driver.create(run, range(40)))  # nobody waits for its logits
    driver.settle()
    assert waits == []
    driver.generate(driver.create(run, range(100, 140)), max_tokens=3)
    driver.settle()

    assert waits[0] == 0  # nothing had been told before the wait
    assert [num_tokens for num_tokens, _ in measured.steps] == [40]


def _counting(waited: Callable[[StepTimer], None], waits: list[int], measured: Measured) -> Callable[[StepTimer], None]:
    def counted(timer: StepTimer) -> None:
        waits.append(len(measured.steps))
        waited(timer)

    return counted
