"""The sampling kernel as machine code: what it chooses is tested in test_device_sampler.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")


@pytest.mark.parametrize("architecture", [80, 90])
def test_compiles_for_gpus(architecture: int, tmp_path: Path) -> None:
    """It compiles for A100 and H100."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    script = Path(__file__).parent / "compile_kernels.py"
    command = [sys.executable, str(script), "sample", str(architecture)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sample ")
