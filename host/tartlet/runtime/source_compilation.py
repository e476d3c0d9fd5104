"""Compiling Python source inside the runner: the state of the fiber that does it, its limits, and what comes of it."""

from __future__ import annotations

import json
from concurrent.futures import Future
from typing import Any

from tartlet.errors import BuildError, TartletError
from tartlet.wasm.executor import Executor
from tartlet.wasm.fiber import Fiber, FiberLimits
from tartlet.wasm.linker import LinkedComponent

COMPILE_LIMITS = FiberLimits(memory_bytes=1 << 30, cpu_ns=60_000_000_000, host_calls=1_000_000)
"""Source that is only compiled can do nothing but be big."""

_RUNNERS_FRAME = '  File "/0/tartlet_runner/'


class CompileJob:
    """The state of a fiber that calls the runner's `compile`.

    Args:
        main: The main module's name.
        files_json: The files' texts, by their paths.
    """

    def __init__(self, main: str, files_json: str) -> None:
        self._program = f'{{"main":{json.dumps(main)},"files":{files_json},"input":null}}'

    def take_program(self) -> str:
        """Give the program that the runner asks for."""
        return self._program

    def print(self, text: str) -> None:
        """Ignore what is printed, such as a SyntaxWarning: it comes again in every run."""

    def log(self, log: object) -> None:
        """Ignore it, as `print` does."""

    def code(self, result: Any) -> str:
        """The files with their code, of what the call came to. Raises BuildError with the syntax error."""
        if isinstance(result, TartletError):
            raise BuildError(f"the source cannot be compiled: {result.message}", hint=result.hint) from result
        is_ok, text = result
        if not is_ok:
            raise BuildError(_of_program(text))
        return str(text)


def _of_program(text: str) -> str:
    """A traceback without what the runner has to do with it, which tells nobody anything of the program."""
    lines = [line for line in text.strip().splitlines() if not line.startswith(_RUNNERS_FRAME)]
    if not any(line.startswith("  File ") for line in lines):
        lines = [line for line in lines if line != "Traceback (most recent call last):"]
    return "\n".join(lines)


def compile_source(executor: Executor, runner: LinkedComponent, main: str, files_json: str) -> str:
    """The files with their code, made where there is no host. Blocks. Raises BuildError."""
    job = CompileJob(main, files_json)
    result: Future[Any] = Future()

    def begin() -> None:
        try:
            Fiber(executor, runner, on_end=result.set_result, state=job, limits=COMPILE_LIMITS).start("compile")
        except TartletError as error:
            result.set_result(error)

    executor.post(begin)
    return job.code(result.result())
