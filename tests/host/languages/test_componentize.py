"""Running componentize-py."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from tartlet.errors import BuildError
from tartlet.languages import componentize
from tartlet.languages.componentize import Recipe
from tartlet.progress import silent


def test_a_missing_tool_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without componentize-py a build is refused at once, with the command that installs it."""

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)

    with pytest.raises(BuildError, match="componentize-py is not installed") as caught:
        componentize.build(Recipe("inferlet", "app", []), tmp_path / "out.wasm", "building", silent)
    assert "pip install 'tartlet[build]'" in caught.value.hint


@pytest.mark.slow
def test_a_failed_build_tells_why_and_leaves_nothing(tmp_path: Path) -> None:
    """The tool's log is in the error, progress is told, and neither output nor temporary files stay."""
    (tmp_path / "app.py").write_text("raise RuntimeError('no such luck')\n")
    output = tmp_path / "out" / "component.wasm"
    told: list[tuple[str, float, float | None]] = []

    with pytest.raises(BuildError, match="no such luck") as caught:
        componentize.build(
            Recipe("inferlet", "app", [tmp_path]), output, "building it", lambda *report: told.append(report)
        )

    assert "backtrace" not in caught.value.message
    assert list(output.parent.iterdir()) == []
    assert {task for task, _, _ in told} == {"building it"}
    assert all(0 <= done < (total or 0) for _, done, total in told)
