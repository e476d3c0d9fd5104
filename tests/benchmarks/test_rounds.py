from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import rounds
from benchmarks.rounds import in_turn, measure_rounds
from benchmarks.settings import Settings


def counting_measure() -> tuple[list[int], Callable[[int], dict[str, float]]]:
    """A measurement that tells how often it was made, and the numbers of its rounds."""
    calls: list[int] = []

    def measure(number: int) -> dict[str, float]:
        calls.append(number)
        return {"calls": float(len(calls))}

    return calls, measure


def test_order_alternates() -> None:
    """What is compared takes turns at being first."""
    order: list[str] = []

    def measure(name: str) -> float:
        order.append(name)
        return float(len(order))

    for number in range(2):
        in_turn(number, {"a": lambda: measure("a"), "b": lambda: measure("b")})

    assert order == ["a", "b", "b", "a"]


def test_warm_up_does_not_count() -> None:
    """Rounds before the first are carried out and dropped."""
    _, measure = counting_measure()

    kept = measure_rounds(measure, 2, Settings(patience=0), warm_up=3)

    assert sorted(kept.values("calls")) == [4.0, 5.0]


def test_patience_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is never quiet, the rounds wanted are kept and marked, after as many retries as allowed."""
    monkeypatch.setattr(rounds, "MAX_OTHERS_SHARE", -1.0)
    monkeypatch.setattr(rounds, "_LONGEST_WAIT_S", 0.0)
    calls, measure = counting_measure()

    kept = measure_rounds(measure, 2, Settings(patience=2), warm_up=0)

    assert len(calls) == 6
    assert kept.num_busy == len(kept.figures) == 2


def test_quiet_rounds_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """No round is repeated when all were quiet."""
    monkeypatch.setattr(rounds, "MAX_OTHERS_SHARE", float("inf"))
    calls, measure = counting_measure()

    kept = measure_rounds(measure, 2, Settings(patience=2), warm_up=0)

    assert len(calls) == 2
    assert kept.num_busy == 0
