"""Rows of figures: on the terminal, as JSON under benchmarks/results/."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.rounds import Rounds

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure should be at most, or at least."""

    limit: float
    is_minimum: bool = False

    def is_met(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value >= self.limit if self.is_minimum else value <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.is_minimum else '<='} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure: the median of `values`."""

    name: str
    values: Sequence[float]
    unit: str
    goal: Goal | None = None
    num_busy: int = 0
    """Of the values, those measured while other processes were at work."""

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def is_met(self) -> bool | None:
        """Whether the median meets the goal; None if there is none."""
        return None if self.goal is None else self.goal.is_met(self.median)

    @property
    def noise(self) -> str:
        """How far the figure can be trusted."""
        return "" if not self.num_busy else f"{self.num_busy} of {len(self.values)} busy"


def row(rounds: Rounds, name: str, unit: str, goal: Goal | None = None, *, label: str | None = None) -> Row:
    """The row of one figure of some rounds."""
    return Row(label or name, rounds.values(name), unit, goal, rounds.num_busy)


def at_most(limit: float) -> Goal:
    """A goal for what should be small."""
    return Goal(limit)


def at_least(limit: float) -> Goal:
    """A goal for what should be large."""
    return Goal(limit, is_minimum=True)


def show(title: str, rows: Sequence[Row], console: Console) -> None:
    """Print rows as a table."""
    table = Table(title=title, title_justify="left")
    for column in ("what", "median", "min", "max", "unit", "n", "goal", "met", "noise"):
        table.add_column(column, justify="right" if column in {"median", "min", "max", "n", "goal"} else "left")
    for entry in rows:
        figures = (figure(value) for value in (entry.median, min(entry.values), max(entry.values)))
        goal = "" if entry.goal is None else str(entry.goal)
        table.add_row(entry.name, *figures, entry.unit, str(len(entry.values)), goal, met(entry), entry.noise)
    console.print(table)


def figure(value: float) -> str:
    """A number with three significant digits, or all of its whole part."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def met(entry: Row) -> str:
    """In a word, whether the goal is met; with a question mark if the machine was busy in most rounds."""
    if entry.is_met is None:
        return ""
    doubt = "?" if 2 * entry.num_busy > len(entry.values) else ""
    return ("yes" if entry.is_met else "NO") + doubt


def to_json(benchmark: str, rows: Sequence[Row]) -> dict[str, Any]:
    """What is written about a benchmark."""
    entries = [asdict(entry) | {"median": entry.median, "is_met": entry.is_met} for entry in rows]
    return {"benchmark": benchmark, "machine": machine.describe(), "rows": entries}


def save(content: dict[str, Any]) -> Path:
    """Write to benchmarks/results/<benchmark>.json."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{content['benchmark']}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def read_row(entry: dict[str, Any]) -> Row:
    """A row as `to_json` wrote it."""
    goal = None if entry["goal"] is None else Goal(**entry["goal"])
    return Row(entry["name"], entry["values"], entry["unit"], goal, entry["num_busy"])
