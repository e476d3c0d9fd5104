"""The attention kernels as machine code: what they compute is tested in test_paged_attention.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

MOST_SHARED_BYTES = 99 * 1024  # of one program, on the GPUs that have least (compute capability 8.6 and 8.9)


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("kernel", ["write", "combine", "decode", "prefill", "tree"])
def test_compiles_for_gpus(kernel: str, architecture: int, tmp_path: Path) -> None:
    """Every kernel compiles for A100 and H100, in every dtype, and fits into the memory that smaller GPUs have too."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    script = Path(__file__).parent / "compile_kernels.py"
    command = [sys.executable, str(script), kernel, str(architecture)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stderr
    shared_bytes = [int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()]
    assert shared_bytes
    assert max(shared_bytes) <= MOST_SHARED_BYTES
