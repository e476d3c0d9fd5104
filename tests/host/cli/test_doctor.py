from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tartlet import doctor
from tartlet.cli import app


@pytest.mark.runner
def test_a_working_installation_is_found_to_be_one() -> None:
    """All findings are ok, among them a program that generated tokens."""
    for_programs = CliRunner().invoke(app, ["doctor", "--json"])
    for_people = CliRunner().invoke(app, ["doctor"])

    assert for_programs.exit_code == 0, for_programs.output
    report = json.loads(for_programs.stdout)
    assert report["is_ok"] is True
    assert all(finding["name"] in for_people.stdout for finding in report["findings"])
    assert "8 tokens on the tiny model" in for_people.stdout
    assert for_people.stdout.count(" MB of at most ") == 2, "the caches that shrink tell their bounds"


def test_what_is_broken_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault is a finding with a hint, exit code 1, and the other findings are there all the same."""
    monkeypatch.setattr(doctor, "SELF_TEST", "def broken(:\n    pass\n")
    monkeypatch.setattr(doctor.metadata, "version", lambda name: _missing(name))

    result = CliRunner().invoke(app, ["doctor"])

    assert result.exit_code == 1
    assert "FAULT wasmtime" in result.stdout
    assert "pip install wasmtime" in result.stdout
    assert "FAULT self-test" in result.stdout
    assert "ok    machine" in result.stdout


def _missing(name: str) -> str:
    raise doctor.metadata.PackageNotFoundError(name)
