from __future__ import annotations

import pytest

from tartlet.server.progress_lines import ProgressLines, Step, read_step


def test_what_is_written_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    """The first and the last step of each task, and not each between; again, if the task comes again."""
    progress = ProgressLines()
    for _ in range(2):
        for number in range(1000):
            progress("loading", number, 1000)
        progress("loading", 1000, 1000)
    progress("counting", 0, None)
    steps = [read_step(line) for line in capsys.readouterr().err.splitlines()]

    ends = [step for step in steps if step is not None and step.done in (0.0, 1000.0)]
    assert ends == [*[Step("loading", 0.0, 1000.0), Step("loading", 1000.0, 1000.0)] * 2, Step("counting", 0.0, None)]
    assert len(steps) < 500
    assert None not in steps


@pytest.mark.parametrize("line", ["", "INFO x: PROGRESS", "PROGRESS", "PROGRESS {}", 'PROGRESS {"task": 1}'])
def test_other_lines(line: str) -> None:
    """They are none of it."""
    assert read_step(line) is None


def test_a_task_has_a_bounded_name() -> None:
    """It is drawn on a terminal."""
    step = read_step('PROGRESS {"task": "%s", "done": 0, "total": null}' % ("x" * 5000))
    assert step is not None
    assert len(step.task) == 200
