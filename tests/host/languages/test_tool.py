"""Running the tools that build components."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tartlet.languages import tool
from tartlet.languages.tool import Ended, folder_for, run_tool, tool_version


def run_code(code: str, folder: Path) -> Ended:
    return run_tool(
        [sys.executable, "-c", code], folder=folder, task="a task", expected_s=1, progress=lambda *report: None
    )


def test_a_tool_tells_its_status_and_its_log(tmp_path: Path) -> None:
    """Both outputs are in the log; it runs in the folder, and reads nothing."""
    code = "import os, sys; print(os.getcwd(), flush=True); print(sys.stdin.read(), file=sys.stderr); sys.exit(3)"
    ended = run_code(code, tmp_path)

    assert ended.status == 3
    assert ended.log == f"{tmp_path}\n\n"


def test_of_a_long_log_the_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that writes without end fills a disk, but no memory."""
    monkeypatch.setattr(tool, "_MAX_LOG_BYTES", 10)

    assert run_code("print('x' * 100 + 'the end')", tmp_path).log == "xxthe end\n"


def test_an_interrupted_tool_is_killed(tmp_path: Path) -> None:
    """What the progress raises ends it."""

    def interrupt(task: str, done: float, total: float | None) -> None:
        raise KeyboardInterrupt

    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(KeyboardInterrupt):
        run_tool(command, folder=tmp_path, task="sleeping", expected_s=1, progress=interrupt)


def test_the_folder_for_an_output_goes_with_the_block(tmp_path: Path) -> None:
    """It lies beside the output, so that a move is at once."""
    output = tmp_path / "a" / "b.wasm"
    with folder_for(output) as folder:
        assert folder.parent == output.parent
        (folder / "x").touch()
    assert list(output.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("cargo 1.95.0 (f2d3ce0bd 2026-03-21)", "1.95.0"),
        ("v20.20.2", "20.20.2"),
        ("0.17.0-dev.1+ab", "0.17.0-dev.1+ab"),
    ],
)
def test_a_version_is_found_in_what_is_printed(printed: str, version: str) -> None:
    """Whatever stands around it."""
    assert tool_version([sys.executable, "-c", f"print({printed!r})"]) == version


def test_a_tool_that_does_not_work_has_no_version() -> None:
    """One that is not there, and one that fails."""
    assert tool_version(["tartlet-no-such-tool"]) is None
    assert tool_version([sys.executable, "-c", "print('1.0'); raise SystemExit(1)"]) is None
