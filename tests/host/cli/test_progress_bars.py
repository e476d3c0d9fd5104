from __future__ import annotations

import pytest

from tartlet.cli import progress_bars
from tartlet.cli.progress_bars import ProgressBars


def test_nothing_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """Progress is for people; stdout is the program's."""
    with ProgressBars() as progress:
        progress("Fetching", 0, None)
        progress("Fetching", 5, 10)
        progress("Fetching", 10, 10)

    assert capsys.readouterr().out == ""


def test_a_long_task_leaves_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no terminal, a finished task is told once, with its time."""
    seconds = iter([0.0, 90.0, 90.0])
    monkeypatch.setattr(progress_bars.time, "monotonic", lambda: next(seconds))

    with ProgressBars() as progress:
        progress("Fetching [it]", 0, 10)
        progress("Fetching [it]", 10, 10)

    assert capsys.readouterr().err == "Fetching [it]: 90.0 s\n"


def test_a_task_that_took_no_time_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The second run of a program says nothing of set-up work."""
    with ProgressBars() as progress:
        progress("Fetching", 1, 1)

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("interrupted", [False, True])
def test_bars_are_drawn_on_a_terminal_and_removed(
    interrupted: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the work ends, the cursor is back and no bar is left."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_INTERACTIVE", "1")

    with ProgressBars() as progress:
        progress("Fetching", 5, 10)
        assert progress._bars is not None
        if not interrupted:
            progress("Fetching", 10, 10)
            assert progress._bars is None
    assert progress._bars is None
    assert capsys.readouterr().err.count("\x1b[?25l") == capsys.readouterr().err.count("\x1b[?25h") + 1


def test_times_can_be_left_out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """For `--quiet`."""
    seconds = iter([0.0, 90.0])
    monkeypatch.setattr(progress_bars.time, "monotonic", lambda: next(seconds))

    with ProgressBars(tells_times=False) as progress:
        progress("Fetching", 0, 10)
        progress("Fetching", 10, 10)

    assert capsys.readouterr().err == ""
