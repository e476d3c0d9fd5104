from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from tartlet.cli import app
from tartlet_engine.saved_contexts import SavedContexts
from tartlet_engine.saved_file import SavedHeader, Snapshot


@pytest.fixture(autouse=True)
def saved_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, in which `local` has saved one context and `other` two."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    store = SavedContexts("any model", tmp_path / "saved")
    for tenant, name in (("local", "story"), ("other", "a"), ("other", "b")):
        header = SavedHeader(tenant, name, "tiny", "any model", 3, 0, None, "")
        pages = torch.zeros(1, 1000, dtype=torch.uint8)
        store.put(Snapshot(header, torch.zeros(3, dtype=torch.int32), pages, None), overwrite=False)
    store.close()
    return tmp_path / "saved"


def listed(*options: str) -> list[str]:
    result = CliRunner().invoke(app, ["saved", "list", "--json", *options])
    assert result.exit_code == 0, result.output
    return [row["name"] for row in json.loads(result.stdout)]


def test_the_list_says_what_a_tenant_has(saved_folder: Path) -> None:
    """Name, model, tokens, size and time left, for people and as JSON; no model is loaded for it."""
    table = CliRunner().invoke(app, ["saved", "list"])

    assert table.exit_code == 0
    assert "story" in table.stdout
    assert "tiny" in table.stdout
    assert listed() == ["story"]
    assert listed("--tenant", "other") == ["a", "b"]
    assert listed("--saved-path", str(saved_folder)) == ["story"]
    assert listed("--tenant", "nobody") == []


def test_what_is_deleted_is_gone() -> None:
    """Of that tenant alone; what is not there, or cannot be a tenant, is an error."""
    runner = CliRunner()
    deleted = runner.invoke(app, ["saved", "rm", "a", "--tenant", "other", "--json"])
    again = runner.invoke(app, ["saved", "rm", "a", "--tenant", "other"])
    nobody = runner.invoke(app, ["saved", "rm", "a", "--tenant", ""])

    assert json.loads(deleted.stdout) == {"tenant": "other", "deleted": "a"}
    assert (again.exit_code, nobody.exit_code) == (2, 2)
    assert "no saved context 'a'" in again.stderr
    assert (listed(), listed("--tenant", "other")) == (["story"], ["b"])
