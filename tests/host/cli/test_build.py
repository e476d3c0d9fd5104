from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tartlet.cli import app

PROGRAM = """
from tartlet_sdk import inferlet

@inferlet
def main() -> int:
    return 7
"""


@pytest.mark.runner
@pytest.mark.slow
def test_a_program_becomes_a_component_that_this_host_would_run(tmp_path: Path) -> None:
    """Where --output says; `tartlet check` agrees."""
    source = tmp_path / "seven.py"
    source.write_text(PROGRAM)
    component = tmp_path / "out" / "seven.wasm"

    built = CliRunner().invoke(app, ["build", str(source), "-o", str(component), "--json"])

    assert built.exit_code == 0, built.output
    assert json.loads(built.stdout) == {
        "component": str(component),
        "language": "python",
        "size_bytes": component.stat().st_size,
    }
    assert CliRunner().invoke(app, ["check", str(component)]).exit_code == 0


@pytest.mark.parametrize("name", ["missing.py", "."])
def test_what_is_no_source_is_named(tmp_path: Path, name: str) -> None:
    """Exit code 4; no file appears."""
    result = CliRunner().invoke(app, ["build", str(tmp_path / name), "-o", str(tmp_path / "x.wasm")])

    assert result.exit_code == 4
    assert "error[build]" in result.stderr
    assert list(tmp_path.iterdir()) == []
