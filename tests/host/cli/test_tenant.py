from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tartlet.cli import app


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")


def call(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, ["tenant", *arguments], input=typed)


def read(*arguments: str) -> Any:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_tenant_is_created_and_listed() -> None:
    """With its weight and limits, for people and as JSON; twice is an error."""
    made = read("create", "acme", "--weight", "2", "--limit", "kv_pages=4000", "--limit", "queue_length=0")
    again = call("create", "acme")
    table = call("list").stdout

    assert (made["name"], made["weight"], made["limits"]) == ("acme", 2.0, {"max_kv_pages": 4000, "queue_length": 0})
    assert [tenant["name"] for tenant in read("list")] == ["acme", "default"]
    assert "max_kv_pages=4,000, queue_length=0" in table
    assert again.exit_code == 2
    assert "there is, or has been, a tenant 'acme'" in again.stderr


def test_a_tenant_is_shown_with_what_holds_for_it() -> None:
    """And what of that was set for it."""
    call("create", "acme", "--limit", "tokens=5")
    shown = read("show", "acme")
    lines = {line.split()[0]: line for line in call("show", "acme").stdout.splitlines()}

    assert shown["limits"] == {"max_tokens": 5}
    assert shown["holding_limits"]["default_tokens"] == 5
    assert shown["holding_limits"]["runs_at_once"] == 64
    assert lines["acme:"].startswith("acme: weight 1, enabled, created 20")
    assert lines["max_tokens"].split() == ["max_tokens", "5", "set", "for", "it"]
    assert lines["max_kv_pages"].split() == ["max_kv_pages", "none"]


def test_the_size_of_an_upload_is_never_without_a_limit() -> None:
    """Where a tenant has none of its own, the server's holds."""
    read("create", "acme")
    (line,) = [line for line in call("show", "acme").stdout.splitlines() if line.startswith("upload_bytes")]

    assert line.split()[1] == "max_upload_bytes"


def test_a_tenant_is_changed() -> None:
    """What is not named stays."""
    call("create", "acme", "--limit", "tokens=5", "--limit", "names=7")
    changed = read("set", "acme", "--weight", "0.5", "--limit", "names=8", "--reset", "tokens", "--disable")
    text = call("set", "acme", "--enable").stdout

    assert (changed["weight"], changed["limits"], changed["is_enabled"]) == (0.5, {"names": 8}, False)
    assert text == "acme: weight 0.5, enabled, names=8\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "Acme"], "1 to 63 of a-z"),
        (["create", "acme", "--weight", "0"], "weight must be"),
        (["create", "acme", "--limit", "token=5"], "Did you mean max_tokens?"),
        (["show", "nobody"], "no tenant 'nobody'"),
        (["set", "nobody", "--weight", "2"], "no tenant 'nobody'"),
        (["set", "default", "--reset", "nonsense"], "is no limit"),
        (["delete", "nobody", "--yes"], "no tenant 'nobody'"),
        (["delete", "default", "--yes"], "built in"),
        (["list", "--database", "redis://x"], "no database of the kind"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], message: str) -> None:
    """Exit code 2."""
    result = call(*arguments)

    assert result.exit_code == 2
    assert message in result.stderr


def test_deleting_asks_first() -> None:
    """Unless told not to."""
    call("create", "acme")
    refused = call("delete", "acme", typed="n\n")
    assert refused.exit_code == 1
    assert len(read("list")) == 2
    assert call("delete", "acme", typed="y\n").stdout.endswith("deleted acme\n")
    assert [tenant["name"] for tenant in read("list")] == ["default"]
    call("create", "globex")
    assert read("delete", "globex", "--yes") == {"deleted": "globex"}


def test_a_database_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    """As a disk that cannot be written: exit code 4."""
    (tmp_path / "db").write_text("no database at all, but some text that is long enough" * 100)
    result = call("list", "--database", str(tmp_path / "db"))

    assert result.exit_code == 4
    assert "error[storage_unavailable]" in result.stderr
