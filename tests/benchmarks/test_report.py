from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import readme, report
from benchmarks.report import Row, at_least, at_most, read_row, to_json


def test_row_survives_json() -> None:
    """A row is the same after it was written and read."""
    row = Row("late", [1.0, 3.0, 2.0], "ms", at_most(2.0), num_busy=1)

    [entry] = json.loads(json.dumps(to_json("live_runs", [row])))["rows"]

    assert read_row(entry) == row
    assert entry["median"] == 2.0
    assert entry["is_met"] is True


@pytest.mark.parametrize(
    ("goal", "value", "is_met"),
    [(at_most(2.0), 2.0, True), (at_most(2.0), 2.1, False), (at_least(400), 400, True), (at_least(400), 399, False)],
)
def test_goals(goal: report.Goal, value: float, is_met: bool) -> None:
    """A goal is met by the limit itself, and by what is better."""
    assert goal.is_met(value) is is_met


def test_readme_keeps_what_is_outside_the_markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewriting the figures replaces what stands between the markers, and nothing else."""
    page = tmp_path / "README.md"
    page.write_text(f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(readme, "README", page)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    report.save(to_json("fork", [Row("forked", [1.5], "s", at_most(1.0))]))

    readme.rewrite()
    readme.rewrite()

    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{readme.BEGIN}\n")
    assert text.endswith(f"{readme.END}\nafter\n")
    assert "old" not in text
    assert text.count("| forked | 1.5 | 1.5 - 1.5 | s | 1 | &lt;= 1 | NO |") == 1
