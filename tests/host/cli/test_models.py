from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tartlet.cli import app


@pytest.fixture(autouse=True)
def tartlet_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a home of its own."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def test_the_list_says_what_there_is() -> None:
    """Name, state, size, licence and source of each model, for people and as JSON."""
    table = CliRunner().invoke(app, ["models", "list"])
    rows = json.loads(CliRunner().invoke(app, ["models", "list", "--json"]).stdout)

    assert table.exit_code == 0
    for row in rows:
        assert row["name"] in table.stdout
        assert row["state"] in table.stdout
    assert {"name", "state", "size_bytes", "licence", "source", "folder"} <= set(rows[0])


def test_a_model_is_pulled_and_removed(tartlet_home: Path) -> None:
    """Stdout has the folder, so that a script can use it."""
    pulled = CliRunner().invoke(app, ["models", "pull", "tiny"])

    folder = Path(pulled.stdout.strip())
    assert (folder / "model.safetensors").exists()
    assert folder.is_relative_to(tartlet_home)

    removed = CliRunner().invoke(app, ["models", "rm", "tiny", "--json"])
    assert json.loads(removed.stdout)["freed_bytes"] > 0
    assert not folder.exists()


def test_an_unknown_model_is_an_error_with_a_suggestion() -> None:
    """And nothing on stdout."""
    result = CliRunner().invoke(app, ["models", "pull", "tinny"])

    assert result.exit_code == 4
    assert result.stdout == ""
    assert "Did you mean tiny" in result.stderr
