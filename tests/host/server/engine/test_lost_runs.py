from __future__ import annotations

import pytest

from tartlet.server.engine import lost_runs
from tartlet.server.engine.lost_runs import LostRuns
from tartlet.server.engine.messages import RunTotals
from tartlet_engine.api import RunClosed


def test_what_a_lost_run_had_used_is_told_once() -> None:
    """By its name, when the engine has closed it; of a run that was closed by its owner nothing is kept."""
    lost = LostRuns()
    lost.expect(5, "run_a")
    before = lost.take(["run_a"])
    was_expected = [lost.note(RunClosed(run_id, 30, 20, 10)) for run_id in (5, 6)]

    assert before == {}
    assert was_expected == [True, False]
    assert lost.take(["run_a", "run_b"]) == {"run_a": RunTotals(30, 20, 10)}
    assert lost.take(["run_a"]) == {}


def test_what_nobody_asks_for_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first."""
    monkeypatch.setattr(lost_runs, "MOST_KEPT", 2)
    lost = LostRuns()
    for run_id in range(3):
        lost.expect(run_id, f"run_{run_id}")
        lost.note(RunClosed(run_id, 0, run_id, 0))

    assert lost.take(["run_0", "run_1", "run_2"]).keys() == {"run_1", "run_2"}
