"""What a compile child does with an upload. Whatever it meets ends it alone."""

from __future__ import annotations

import sys
from collections.abc import Callable

import msgspec

from tartlet.errors import TartletError
from tartlet.server.child_process import end_with_parent, keep_private
from tartlet.server.compile.components import compile_component
from tartlet.server.compile.confinement import confine
from tartlet.server.compile.messages import CompileAnswer, Compiled, CompileJob, memory_limit_error
from tartlet.server.compile.translation import Translated, translate
from tartlet.server.failures import to_failure


def main() -> None:
    """Do the job on standard input, under its limits, and write the answer to standard output."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=CompileJob)
    end_with_parent(job.parent)
    keep_private()
    sys.stdout.buffer.write(msgspec.json.encode(answer(job, confine)) + b"\n")
    sys.stdout.buffer.flush()


def answer(job: CompileJob, confine_self: Callable[[CompileJob], None]) -> CompileAnswer:
    """Compile a program, or tell what is wrong with it.

    Args:
        job: What to compile.
        confine_self: Called when no program need be started any more, and the larger part of the work begins.
    """
    try:
        translated = translate(job) if job.kind == "source" else None
        confine_self(job)
        return CompileAnswer(compiled=_compiled(job, translated))
    except TartletError as error:
        return CompileAnswer(failure=to_failure(error))
    except MemoryError:
        return CompileAnswer(failure=to_failure(memory_limit_error(job.limits)))


def _compiled(job: CompileJob, translated: Translated | None) -> Compiled:
    if translated is None:
        return compile_component(job)
    from tartlet.server.compile.sources import compile_source  # with Wasmtime, which components may do without

    return compile_source(job, translated)
