from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import wasmtime
from typer.testing import CliRunner

from benchmarks.controller_fixture import controller
from tartlet.cli import app
from tests.hostile_components import functions, inferlet_with

GOOD = """(component
  (core module $m
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16))
    (func (export "run") (param i32 i32) (result i32) (i32.const 0)))
  (core instance $i (instantiate $m))
  (func (export "run") (param "input" string) (result (result string (error string)))
    (canon lift (core func $i "run") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))
"""
UNKNOWN_IMPORT = '(component (import "acme:tools/hammer@1.0.0" (instance)))'
NO_EXPORT = "(component)"


def write_component(folder: Path, text: str) -> Path:
    path = folder / "program.wasm"
    path.write_bytes(wasmtime.wat2wasm(text))
    return path


def test_a_component_that_fits_is_described(tmp_path: Path) -> None:
    """Size, code, imports and exports, and that it would run."""
    path = write_component(tmp_path, GOOD)

    result = CliRunner().invoke(app, ["check", str(path)])

    assert result.exit_code == 0, result.output
    assert re.search(r"^functions +2 +50,000$", result.stdout, re.MULTILINE)
    assert "exports  run (function)" in result.stdout
    assert "this host would run it" in result.stdout


def test_a_controller_is_told_by_its_exports(tmp_path: Path) -> None:
    """It is checked against its own world; one that lacks a function of it is refused."""
    path = tmp_path / "controller.wasm"
    path.write_bytes(controller())

    result = CliRunner().invoke(app, ["check", str(path)])

    assert result.exit_code == 0, result.output
    assert "world    controller" in result.stdout
    half = write_component(
        tmp_path, GOOD.replace('(func (export "run") (param "input"', '(func (export "step") (param "input"')
    )
    result = CliRunner().invoke(app, ["check", str(half), "--json"])
    found = json.loads(result.stdout)
    assert (found["world"], found["problem"]["code"]) == ("controller", "missing_export")


def test_json_says_the_same(tmp_path: Path) -> None:
    """For programs."""
    path = write_component(tmp_path, GOOD)

    found = json.loads(CliRunner().invoke(app, ["check", str(path), "--json"]).stdout)

    assert found["is_ok"] is True
    assert found["counts"]["size_bytes"]["used"] == path.stat().st_size
    assert found["counts"]["functions"] == {"used": 2, "allowed": 500_000, "allowed_in_uploads": 50_000}
    assert found["exceeds_uploads"] == []
    assert found["exports"] == [{"name": "run", "kind": "function"}]


def test_what_a_server_would_refuse_is_marked(tmp_path: Path) -> None:
    """This host would run it; a server would not, unless its operator allows more."""
    path = tmp_path / "program.wasm"
    path.write_bytes(inferlet_with(functions(60_000)))

    result = CliRunner().invoke(app, ["check", str(path)])

    assert result.exit_code == 0, result.output
    assert re.search(r"^functions +60,002 +50,000  too much$", result.stdout, re.MULTILINE)
    assert "unless its operator allows more of max_functions" in result.stdout
    assert "this host would run it" in result.stdout
    found = json.loads(CliRunner().invoke(app, ["check", str(path), "--json"]).stdout)
    assert found["exceeds_uploads"] == ["functions"]


@pytest.mark.parametrize(("text", "code"), [(UNKNOWN_IMPORT, "unknown_import"), (NO_EXPORT, "missing_export")])
def test_a_component_that_does_not_fit_is_described_and_refused(tmp_path: Path, text: str, code: str) -> None:
    """The exit code says so, and the error names the reason."""
    path = write_component(tmp_path, text)

    for_people = CliRunner().invoke(app, ["check", str(path)])
    for_programs = CliRunner().invoke(app, ["check", str(path), "--json"])

    assert for_people.exit_code == for_programs.exit_code == 4
    assert f"error[{code}]" in for_people.stderr
    assert "would run it" not in for_people.stdout
    assert json.loads(for_programs.stdout)["problem"]["code"] == code


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"hello", "not_a_component"),
        (b"", "not_a_component"),
        (wasmtime.wat2wasm("(module)"), "not_a_component"),
        (wasmtime.wat2wasm(GOOD)[:60], "truncated"),
        (inferlet_with(functions(999_999)), "too_many_functions"),
    ],
)
def test_what_is_no_component_is_named(tmp_path: Path, content: bytes, code: str) -> None:
    """At once, and without a traceback."""
    path = tmp_path / "program.wasm"
    path.write_bytes(content)

    result = CliRunner().invoke(app, ["check", str(path)])

    assert result.exit_code == 4
    assert f"error[{code}]" in result.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With the path that was given."""
    result = CliRunner().invoke(app, ["check", str(tmp_path / "no.wasm")])

    assert result.exit_code == 4
    assert "no.wasm" in result.stderr
