from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tartlet.cli import app
from tartlet.cli.with_storage import with_storage
from tartlet.events import RunUsage
from tartlet.server.front.storage import Storage


async def run_once(storage: Storage) -> None:
    await storage.runs.start("run-1", "default", "d" * 64, "hello")
    used = RunUsage(prompt_tokens=1000, cached_tokens=10, generated_tokens=7, cpu_ms=1500, wall_ms=2500, page_seconds=4)
    await storage.runs.end("run-1", "failed", usage=used)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home in whose database one run has ended."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    with_storage(None, run_once)


def test_usage_is_shown_by_day_and_tenant() -> None:
    """For people and as JSON; of one tenant if it is named."""
    table = CliRunner().invoke(app, ["usage"])
    rows = json.loads(CliRunner().invoke(app, ["usage", "--json", "--tenant", "default", "--days", "2"]).stdout)

    assert table.exit_code == 0, table.output
    assert table.stdout.splitlines()[1].split()[1:] == [
        "default",
        "1",
        "1",
        "1,000",
        "10",
        "7",
        "4.0",
        "1.5",
        "2.5",
        "0",
    ]
    assert [(row["tenant"], row["runs"], row["generated_tokens"]) for row in rows] == [("default", 1, 7)]
    assert json.loads(CliRunner().invoke(app, ["usage", "--json", "--tenant", "nobody"]).stdout) == []
    assert CliRunner().invoke(app, ["usage", "--days", "0"]).exit_code == 2
