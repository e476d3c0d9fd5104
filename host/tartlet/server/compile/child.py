"""What a compile child does with an upload. Whatever it meets ends it alone."""

from __future__ import annotations

import sys

import msgspec

from tartlet.errors import TartletError
from tartlet.server.compile.components import compile_component
from tartlet.server.compile.confinement import confine
from tartlet.server.compile.messages import CompileAnswer, Compiled, CompileJob, memory_limit_error
from tartlet.server.failures import to_failure


def main() -> None:
    """Do the job on standard input, under its limits, and write the answer to standard output."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=CompileJob)
    confine(job)
    sys.stdout.buffer.write(msgspec.json.encode(answer(job)) + b"\n")
    sys.stdout.buffer.flush()


def answer(job: CompileJob) -> CompileAnswer:
    """Compile a program, or tell what is wrong with it."""
    try:
        return CompileAnswer(compiled=_compiled(job))
    except TartletError as error:
        return CompileAnswer(failure=to_failure(error))
    except MemoryError:
        return CompileAnswer(failure=to_failure(memory_limit_error(job.limits)))


def _compiled(job: CompileJob) -> Compiled:
    if job.kind == "component":
        return compile_component(job)
    from tartlet.server.compile.sources import compile_source  # with Wasmtime, which components may do without

    return compile_source(job)
