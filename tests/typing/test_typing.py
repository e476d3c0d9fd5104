import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.mark.slow
def test_programs_of_users_type_check() -> None:
    """A program that uses the whole Python API passes `mypy --strict`."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml"]
    result = subprocess.run(
        [*command, str(FOLDER / "host_program.py")],
        cwd=FOLDER.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stdout + result.stderr
