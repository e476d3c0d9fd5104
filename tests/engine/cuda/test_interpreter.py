"""Triton's interpreter, with its faults made good."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

pytest.importorskip("triton")

import triton
import triton.language as tl

from tartlet_engine.cuda.interpreter import use_interpreter


@triton.jit
def product_kernel(left, right, result, count, size: tl.constexpr):  # type: ignore[no-untyped-def]
    places = tl.arange(0, size)[:, None] * size + tl.arange(0, size)[None, :]
    total = tl.zeros([size, size], tl.float32)
    for step in range(0, tl.load(count)):
        offset = step * size * size
        total = tl.dot(tl.load(left + offset + places), tl.load(right + offset + places), total)
    tl.store(result + places, total)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_and_loaded_bounds(dtype: torch.dtype, device: torch.device) -> None:
    """A sum of matrix products, as many as a number in memory says, is right in bfloat16 too."""
    left, right = torch.randn(2, 3, 16, 16).to(device, dtype)
    result = torch.empty(16, 16, device=device)
    product_kernel[(1,)](left, right, result, torch.tensor(2, device=device), size=16)

    torch.testing.assert_close(result, (left[:2].float() @ right[:2].float()).sum(0), atol=2e-2, rtol=1e-3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="kernels run on the GPU")
def test_can_be_chosen_again() -> None:
    """Choosing it a second time changes nothing."""
    from triton.runtime import interpreter

    before = interpreter.InterpreterBuilder.create_dot
    use_interpreter()

    assert interpreter.InterpreterBuilder.create_dot is before


def test_must_be_chosen_before_kernels_are_defined() -> None:
    """Afterwards it would run only some kernels: an error that says so."""
    program = (
        "import tartlet_engine.cuda.paged_kernels\n"
        "from tartlet_engine.cuda.interpreter import use_interpreter\n"
        "use_interpreter()\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100)

    assert "RuntimeError: the interpreter must be chosen before kernels are imported" in done.stderr
