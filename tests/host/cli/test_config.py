from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tartlet.cli import app


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    monkeypatch.delenv("TARTLET_MODEL", raising=False)


def test_all_settings_and_their_origins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For people and as JSON; a password is in neither."""
    (tmp_path / "server.toml").write_text("port = 5\ndatabase = 'postgresql://me:hunter2@db/t'\n")
    monkeypatch.setenv("TARTLET_WORKERS", "7")
    text = CliRunner().invoke(app, ["config", "show"])
    shown = json.loads(CliRunner().invoke(app, ["config", "show", "--json"]).stdout)

    assert text.exit_code == 0, text.output
    assert "port = 5  (file)" in text.stdout
    assert "workers = 7  (environment)" in text.stdout
    assert "hunter2" not in text.stdout + json.dumps(shown)
    assert shown["settings"]["port"] == {"value": 5, "origin": "file"}
    assert shown["settings"]["database"]["origin"] == "file"
    assert shown["file"] == str(tmp_path / "server.toml")


def test_a_file_that_is_wrong(tmp_path: Path) -> None:
    """The exit code is that of wrong use, and the error names the key that was meant."""
    file = tmp_path / "other.toml"
    file.write_text("prot = 5")
    result = CliRunner().invoke(app, ["config", "show", "--config", str(file)])

    assert result.exit_code == 2
    assert "port" in result.output
