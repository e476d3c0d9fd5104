"""Components in a compile child: count, check, validate, compile, keep. The cheap things come first.

What loads Wasmtime is imported when the counts are known to be in order.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tartlet.component_limits import ComponentLimits, refusal
from tartlet.errors import ProgramError, TartletError
from tartlet.server.compile.messages import Compiled, CompileJob
from tartlet.wasm.component_counts import count_component


def compile_component(job: CompileJob) -> Compiled:
    """Make native code of a component. Raises what is wrong with it."""
    data = _read(Path(job.path), job.component)
    counts, modules = count_component(data, job.component)

    from tartlet.contract import contract
    from tartlet.server.program_facts import component_facts
    from tartlet.wasm.compiler import Compiler
    from tartlet.wasm.wasm_engine import process_engine

    world = contract().world_of(data)
    contract().check_component(data, world)
    compiler = Compiler(process_engine(), Path(job.folder), max_bytes=sys.maxsize)  # the front sees to what is kept
    compiler.validate(data, modules)
    try:
        component = compiler.compile(data, must_keep=True)
    except OSError as error:
        raise not_kept(error) from error
    try:
        contract().check_types(compiler.wasm_engine, component, world)
    except TartletError:
        compiler.forget(data)
        raise
    return Compiled(
        facts=component_facts(data, is_controller=world == "controller"),
        code_path=str(compiler.cache_path(data)),
        counts=counts,
    )


def not_kept(error: OSError) -> TartletError:
    """The error for a disk that is full, or fails."""
    return TartletError(f"the compiled program cannot be kept: {error.strerror}", code="not_kept")


def _read(path: Path, limits: ComponentLimits) -> bytes:
    """Read a component, but of one that is too large no more than tells that."""
    try:
        size = path.stat().st_size
        if size > limits.max_size_bytes:
            raise refusal("size_bytes", size, limits.max_size_bytes)
        return path.read_bytes()
    except OSError as error:
        raise ProgramError(f"the stored program cannot be read: {error.strerror}", code="not_found") from error
