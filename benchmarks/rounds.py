"""Repeats a measurement, and tells rounds in which the machine had other work from quiet ones.

A round measures everything that is to be compared, one thing after the other, so that what disturbs it disturbs all
alike. It should last some 0.2 s at least: the kernel counts CPU time in steps of 10 ms.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import machine
from benchmarks.settings import Settings

MAX_OTHERS_SHARE = 0.06
"""Of all cores' time: what other processes may use in a round that counts as quiet."""

_LONGEST_WAIT_S = 3.0
_LOOK_S = 0.2

Figures = Mapping[str, float]
"""What one round measured, by name."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds that were kept."""

    figures: tuple[Figures, ...]
    num_busy: int
    """Of these, rounds in which other processes used more than `MAX_OTHERS_SHARE`."""

    def values(self, name: str) -> list[float]:
        """One figure in all rounds."""
        return [round_[name] for round_ in self.figures]


def measure_rounds(measure: Callable[[int], Figures], times: int, settings: Settings, *, warm_up: int = 1) -> Rounds:
    """Measure until there are `times` quiet rounds, or patience is at its end; then the least busy others fill up.

    Args:
        measure: Carries out one round, given its number: use it to vary the order of what is compared.
        times: Rounds wanted.
        settings: How patient to be.
        warm_up: Rounds before the first that counts.
    """
    for number in range(warm_up):
        measure(number)
    attempts = times * (1 + settings.patience)
    taken: list[tuple[float, Figures]] = []
    for number in range(attempts):
        share, figures = _watch(lambda number=number: measure(number))  # type: ignore[misc]
        taken.append((share, figures))
        if sum(_is_quiet(share) for share, _ in taken) == times:
            break
        if not _is_quiet(share) and number + 1 < attempts and settings.patience:
            _wait_for_quiet()
    taken.sort(key=lambda entry: entry[0])
    kept = taken[:times]
    return Rounds(tuple(figures for _, figures in kept), sum(not _is_quiet(share) for share, _ in kept))


def in_turn(number: int, measures: Mapping[str, Callable[[], float]]) -> Figures:
    """Measure several things one after the other, in the opposite order every other round."""
    names = list(measures)
    if number % 2:
        names.reverse()
    return {name: measures[name]() for name in names}


def between(base: Callable[[], float], ways: Mapping[str, Callable[[], float]]) -> tuple[float, Figures]:
    """Measure each of several ways between two measurements of a base, which drifts with the machine.

    Returns: the mean of the base, and by how much each way is above the mean of the two around it.
    """
    bases = [base()]
    more = {}
    for name, measure in ways.items():
        figure = measure()
        bases.append(base())
        more[name] = figure - (bases[-2] + bases[-1]) / 2
    return sum(bases) / len(bases), more


def _watch(action: Callable[[], Figures]) -> tuple[float, Figures]:
    """What `action` gives, and the share of all cores that other processes used meanwhile."""
    began, busy, own = time.monotonic(), machine.busy_seconds(), machine.own_seconds()
    figures = action()
    elapsed = time.monotonic() - began
    others = machine.busy_seconds() - busy - (machine.own_seconds() - own)
    return max(0.0, others) / (elapsed * (os.cpu_count() or 1)), figures


def _is_quiet(share: float) -> bool:
    return share < MAX_OTHERS_SHARE


def _wait_for_quiet() -> None:
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while time.monotonic() < deadline:
        share, _ = _watch(lambda: time.sleep(_LOOK_S) or {})  # type: ignore[func-returns-value]
        if _is_quiet(share):
            return
