"""Triton's interpreter: runs the kernels on a CPU, line by line, for tests and trials without a GPU.

Two faults of it are made good: it multiplies the bits of bfloat16 matrices as if they were whole numbers (Triton 3.6 to
3.8), and with NumPy 2.4 it cannot loop to a bound that a kernel has loaded (Triton 3.6).
"""

from __future__ import annotations

import os
import sys
from typing import Any


def use_interpreter() -> None:
    """Let all kernels run in the interpreter. Idempotent.

    Raises RuntimeError if kernels, or Triton's own that they call, are imported already: set TRITON_INTERPRET=1 then.
    """
    if os.environ.get("TRITON_INTERPRET") != "1":
        loaded = [name for name in sys.modules if name == "triton.language" or _is_ours(name)]
        if loaded:
            raise RuntimeError(f"the interpreter must be chosen before kernels are imported, but {loaded[0]} is")
        os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined
    from triton.runtime import interpreter

    if getattr(interpreter, "_tartlet_mends", False):
        return
    interpreter._tartlet_mends = True
    _mend_products(interpreter)
    _mend_bounds(interpreter)


def _is_ours(module_name: str) -> bool:
    return module_name.startswith("tartlet_engine.cuda.") and module_name.endswith("_kernels")


def _mend_products(interpreter: Any) -> None:
    """Widen bfloat16 operands before they are multiplied, as a GPU does."""
    import numpy as np
    import triton.language as tl

    multiply = interpreter.InterpreterBuilder.create_dot

    def widen(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        data = (handle.data.astype(np.uint32) << 16).view(np.float32)
        return interpreter.TensorHandle(data, tl.float32)

    def create_dot(self: Any, a: Any, b: Any, *others: Any) -> Any:
        return multiply(self, widen(a), widen(b), *others)

    interpreter.InterpreterBuilder.create_dot = create_dot


def _mend_bounds(interpreter: Any) -> None:
    """Let a loaded number, which is an array of one element, be a bound of `range`."""
    patch = interpreter._patch_lang_tensor

    def patch_tensor(tensor: Any, *others: Any) -> None:
        patch(tensor, *others)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = patch_tensor
