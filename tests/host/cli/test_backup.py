from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tartlet.cli.app import app


def call(*words: str) -> str:
    result = CliRunner().invoke(app, [*words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant that is made after the copy is gone when that is restored; one made before is there."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    call("tenant", "create", "before")
    copied = call("backup", str(tmp_path / "copy"))
    call("tenant", "create", "after")
    restored = call("restore", str(tmp_path / "copy"))
    tenants = call("tenant", "list")

    assert copied == f"copied to {tmp_path / 'copy'}, with 0 programs\n"
    assert restored.startswith("restored ")
    assert "before" in tenants
    assert "after" not in tenants


def test_what_is_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no database, no copy, or it is of another kind: wrong use."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    for words in (
        ["backup", str(tmp_path / "copy")],
        ["backup", str(tmp_path / "copy"), "--database", "postgresql://host/name"],
        ["restore", str(tmp_path / "copy")],
    ):
        result = CliRunner().invoke(app, words)
        assert (result.exit_code, "error[" in result.stderr) == (2, True), result.output
