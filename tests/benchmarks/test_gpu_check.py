"""The check for machines with a GPU, as far as a machine without one can run it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed", allow_module_level=True)

SCRIPT = Path(__file__).parent.parent.parent / "benchmarks" / "gpu_check.py"


@pytest.mark.runner
def test_runs_to_its_end_on_a_cpu(tmp_path: Path) -> None:
    """In the interpreter, with tiny shapes, from any folder: every part runs, nothing is wrong, figures are written."""
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(SCRIPT), "--cpu-smoke", "--json", str(figures)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)

    assert done.returncode == 0, done.stdout + done.stderr
    written = json.loads(figures.read_text())
    assert written["failures"] == []
    names = " ".join(written["figures"])
    for part in ("attention", "sampling", "decode attention", "decode of 2", "prefill", "tax, every chunk", "greedy"):
        assert part in names


def test_says_when_there_is_no_gpu() -> None:
    """Without a GPU and without the trial mode it does nothing, and says so."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=200)

    assert done.returncode == 2
    assert "there is no GPU; --cpu-smoke" in done.stderr
