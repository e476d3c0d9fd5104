from __future__ import annotations

import json
import subprocess
import sys

from typer.testing import CliRunner

import tartlet
from tartlet.cli import app, errors


def test_help_lists_the_commands_and_the_exit_codes() -> None:
    """Both are part of what scripts rely on."""
    text = CliRunner().invoke(app, ["--help"]).stdout

    for command in ("run", "build", "check", "new", "models", "doctor", "version"):
        assert f" {command} " in text
    for code in (errors.PROGRAM_FAILED, errors.WRONG_USE, errors.LIMIT_EXCEEDED, errors.CANNOT_LOAD, errors.CANCELLED):
        assert str(code) in text


def test_help_loads_nothing_heavy() -> None:
    """Asking for help must not wait for Wasmtime, torch or the hub's library."""
    heavy = {"torch", "transformers", "wasmtime", "cffi", "huggingface_hub", "msgspec"}
    code = f"import sys, tartlet.cli; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_version_is_that_of_the_package() -> None:
    """For people and for programs."""
    assert CliRunner().invoke(app, ["version"]).stdout == f"tartlet {tartlet.__version__}\n"
    assert json.loads(CliRunner().invoke(app, ["version", "--json"]).stdout) == {"version": tartlet.__version__}


def test_a_wrong_option_is_wrong_use() -> None:
    """Exit code 2, and nothing is run."""
    result = CliRunner().invoke(app, ["run", "--no-such-option", "x.py"])

    assert result.exit_code == errors.WRONG_USE
    assert "--no-such-option" in result.stderr


def test_the_module_is_the_command() -> None:
    """`python -m tartlet` works where the script is not on the path."""
    done = subprocess.run([sys.executable, "-m", "tartlet", "version"], capture_output=True, text=True, check=True)

    assert done.stdout == f"tartlet {tartlet.__version__}\n"
