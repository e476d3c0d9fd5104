from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tartlet.cli import app


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home with the tenant `acme`."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    assert CliRunner().invoke(app, ["tenant", "create", "acme"]).exit_code == 0


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["key", *arguments])


def read(*arguments: str) -> Any:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_key_is_printed_once() -> None:
    """Alone on stdout, so that a script can take it; the list shows what it begins with."""
    made = call("create", "--tenant", "acme", "--label", "laptop")
    token = made.stdout.strip()
    listed = call("list").stdout

    assert re.fullmatch("tlk_[0-9a-f]{48}", token)
    assert "a key of acme for runs:start" in made.stderr
    assert "not shown again" in made.stderr
    assert token[:12] in listed
    assert token not in listed
    assert token not in json.dumps(read("list"))
    assert "laptop" in listed


def test_keys_are_for_tenants_scopes_and_times() -> None:
    """By default of the built-in tenant, for all that tenants may do, for ever."""
    plain = read("create")["record"]
    narrow = read("create", "--tenant", "acme", "--scope", "openai", "--scope", "runs:read", "--expires", "2d")[
        "record"
    ]
    operators = read("create", "--operator")["record"]

    assert (plain["tenant"], plain["expires_ms"], len(plain["scopes"])) == ("default", None, 5)
    assert (narrow["tenant"], narrow["scopes"]) == ("acme", ["runs:read", "openai"])
    assert narrow["expires_ms"] - narrow["created_ms"] == 2 * 86_400_000
    assert (operators["tenant"], operators["scopes"]) == (None, ["admin"])
    assert [key["key_id"] for key in read("list", "--tenant", "acme")] == [narrow["key_id"]]
    assert [key["key_id"] for key in read("list", "--operator")] == [operators["key_id"]]
    assert "valid until 20" in call("list", "--tenant", "acme").stdout


def test_a_key_is_rotated_and_revoked() -> None:
    """The old one stays valid as long as it is said."""
    old = read("create", "--tenant", "acme")["record"]
    new = read("rotate", old["key_id"], "--grace", "0s")
    table = call("list").stdout

    assert new["record"]["tenant"] == "acme"
    assert f"rotated into {new['record']['key_id']}" in table
    assert "expired 20" in table
    assert call("revoke", new["record"]["key_id"]).stdout == f"revoked {new['record']['key_id']}\n"
    assert call("list").stdout.count("revoked 20") == 1
    assert read("revoke", new["record"]["key_id"])["revoked_ms"] is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "--tenant", "nobody"], "no tenant 'nobody'"),
        (["create", "--tenant", "acme", "--operator"], "no tenant"),
        (["create", "--scope", "admin"], "the scopes of a tenant's key"),
        (["create", "--expires", "soon"], "is no time"),
        (["rotate", "tlk_00000000"], "no key"),
        (["revoke", "nonsense"], "no key"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], message: str) -> None:
    """Exit code 2."""
    result = call(*arguments)

    assert result.exit_code == 2
    assert message in result.stderr
