from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "wasmtime", "tartlet.wasm", "tartlet.host", "transformers", "numpy")


def test_the_front_loads_neither_wasmtime_nor_torch() -> None:
    """In a process of its own, the whole application is there without them."""
    code = f"import sys, tartlet.server.front.app; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
