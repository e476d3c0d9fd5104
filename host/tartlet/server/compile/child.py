"""What a compile child does: count, check, validate, compile, keep. The cheap things come first.

Whatever it meets ends it alone. What loads Wasmtime is imported when the counts are known to be in order.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from tartlet.component_limits import ComponentLimits, refusal
from tartlet.errors import ProgramError, TartletError
from tartlet.server.compile.confinement import confine
from tartlet.server.compile.messages import CompileAnswer, Compiled, CompileJob, memory_limit_error
from tartlet.server.failures import to_failure
from tartlet.wasm.component_counts import count_component


def main() -> None:
    """Do the job on standard input, under its limits, and write the answer to standard output."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=CompileJob)
    confine(job.limits, job.parent)
    sys.stdout.buffer.write(msgspec.json.encode(answer(job)) + b"\n")
    sys.stdout.buffer.flush()


def answer(job: CompileJob) -> CompileAnswer:
    """Compile a component, or tell what is wrong with it."""
    try:
        return CompileAnswer(compiled=_compile(Path(job.path), job.component))
    except TartletError as error:
        return CompileAnswer(failure=to_failure(error))
    except MemoryError:
        return CompileAnswer(failure=to_failure(memory_limit_error(job.limits)))


def _compile(path: Path, limits: ComponentLimits) -> Compiled:
    data = _read(path, limits)
    counts, modules = count_component(data, limits)

    from tartlet import paths
    from tartlet.contract import contract
    from tartlet.server.program_facts import component_facts
    from tartlet.wasm.compiler import Compiler
    from tartlet.wasm.wasm_engine import process_engine

    world = contract().world_of(data)
    contract().check_component(data, world)
    compiler = Compiler(process_engine(), paths.components_folder())
    compiler.validate(data, modules)
    try:
        component = compiler.compile(data, must_keep=True)
    except OSError as error:
        raise TartletError(f"the compiled component cannot be kept: {error.strerror}", code="not_kept") from error
    try:
        contract().check_types(compiler.wasm_engine, component, world)
    except TartletError:
        compiler.forget(data)
        raise
    return Compiled(
        facts=component_facts(data, is_controller=world == "controller"),
        counts=counts,
        native_path=str(compiler.cache_path(data)),
    )


def _read(path: Path, limits: ComponentLimits) -> bytes:
    """Read a component, but of one that is too large no more than tells that."""
    try:
        size = path.stat().st_size
        if size > limits.max_size_bytes:
            raise refusal("size_bytes", size, limits.max_size_bytes)
        return path.read_bytes()
    except OSError as error:
        raise ProgramError(f"the stored component cannot be read: {error.strerror}", code="not_found") from error
