"""The front's side of compiling: a child for each upload, which is ended if it takes too long.

Nothing here loads Wasmtime or touches what was uploaded.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tartlet.component_limits import ComponentLimits
from tartlet.errors import InvalidComponentError, TartletError, UnavailableError
from tartlet.server.child_environment import worker_environment
from tartlet.server.compile.messages import (
    CompileAnswer,
    Compiled,
    CompileJob,
    CompileLimits,
    limit_error,
    memory_limit_error,
)
from tartlet.server.compile.turns import Turns
from tartlet.server.failures import to_error
from tartlet.server.requests import ProgramKind

_MODULE = "tartlet.server.compile"

_MAX_ANSWER_BYTES, _KEPT_ERROR_BYTES = 1 << 20, 4096
_OUT_OF_MEMORY = (b"memory allocation of", b"Cannot allocate memory", b"failed to spawn thread")

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Work:
    """What is being compiled, and how many wait for it."""

    task: asyncio.Task[Compiled]
    num_waiting: int = 0


class CompileClient:
    """Compiles what tenants have uploaded, a few at once, each in a process of its own.

    Args:
        limits: What one child may use.
        children: Children at once; a tenant may have all of them but one.
        waiting_per_tenant: Uploads of a tenant that may wait for their turn.
        waiting: Uploads of all tenants that may wait; beyond that, a tenant can have one waiting.
    """

    def __init__(
        self,
        limits: CompileLimits | None = None,
        *,
        children: int = 2,
        waiting_per_tenant: int = 16,
        waiting: int = 200,
    ) -> None:
        self._limits = limits or CompileLimits()
        self._turns = Turns(children, max(1, children - 1), waiting_per_tenant, waiting)
        self._under_way: dict[bytes, _Work] = {}  # by the job

    async def compile(
        self, path: Path, limits: ComponentLimits, *, tenant: str, folder: Path, kind: ProgramKind = "component"
    ) -> Compiled:
        """Check and compile a program. Who asks for the same while it is being done waits for the same child.

        Cancelled, it kills the child, unless others wait for it.

        Args:
            path: Where it lies. The file must stay as it is.
            limits: What may be in it, if it is a component.
            tenant: Who has uploaded it.
            folder: Where what is made of it is kept: the tenant's own, so that nothing is shared between tenants.
            kind: What is in the file.

        Raises:
            InvalidComponentError: It is none that workers can run, or exceeds a limit: of `limits`, by a code such as
                `too_many_functions`; or of compiling, `compile_limit`.
            BuildError, ProgramError: It is source that cannot be compiled, or has nothing to run.
            UnavailableError: Too many uploads of the tenant wait already.
            TartletError: It cannot be compiled for reasons that are not its own, such as a full disk (`not_kept`).
        """
        job = msgspec.json.encode(
            CompileJob(
                path=str(path), kind=kind, folder=str(folder), component=limits, limits=self._limits, parent=os.getpid()
            )
        )
        work = self._under_way.get(job)
        if work is None:
            work = self._under_way[job] = _Work(asyncio.create_task(self._work(job, tenant)))
        work.num_waiting += 1
        try:
            return await asyncio.shield(work.task)
        finally:
            work.num_waiting -= 1
            if not work.num_waiting:
                if self._under_way.get(job) is work:
                    del self._under_way[job]
                work.task.cancel()  # no effect if it is done
                await asyncio.wait({work.task})

    async def _work(self, job: bytes, tenant: str) -> Compiled:
        async with self._turns.turn(tenant):
            answer = await self._run(job)
        if answer.failure is not None:
            raise to_error(answer.failure)
        assert answer.compiled is not None
        return answer.compiled

    async def _run(self, job: bytes) -> CompileAnswer:
        # What a child that is killed leaves behind goes, too; a tool that it has started may still be ending.
        with tempfile.TemporaryDirectory(prefix="tartlet-compile-", ignore_cleanup_errors=True) as scratch:
            return await self._run_in(scratch, job)

    async def _run_in(self, scratch: str, job: bytes) -> CompileAnswer:
        try:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", _MODULE),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=worker_environment(os.environ) | {"MALLOC_ARENA_MAX": "2", "TMPDIR": scratch},
                start_new_session=True,  # or Ctrl-C would end it before the front can
            )
        except OSError as error:  # no more processes, files or memory: what exactly, uvloop does not always tell
            _log.warning("a compile child cannot be started: %s", error)
            raise UnavailableError(
                "no process can be started to compile it now", hint="Ask again in a while."
            ) from error
        try:
            async with asyncio.timeout(self._limits.wall_s):
                output, errors, _ = await asyncio.gather(
                    _read_start(child, _MAX_ANSWER_BYTES), _read_end(child, _KEPT_ERROR_BYTES), _write(child, job)
                )
                status = await child.wait()
        except TimeoutError:
            raise limit_error(f"{self._limits.wall_s:g} seconds") from None
        finally:
            with suppress(ProcessLookupError):  # it has ended
                child.kill()
            await child.wait()
        return self._answer(status, output, errors)

    def _answer(self, status: int, output: bytes, errors: bytes) -> CompileAnswer:
        """What a child said before it ended, or the error for how it ended."""
        if status == -signal.SIGXCPU:
            raise limit_error(f"{self._limits.cpu_s:,} seconds of CPU time")
        if status == -signal.SIGKILL or any(sign in errors for sign in _OUT_OF_MEMORY):
            raise memory_limit_error(self._limits)
        if status < 0:
            raise InvalidComponentError(
                f"compiling the program has crashed the compiler ({signal.Signals(-status).name})",
                hint="No other program is affected. Please report it.",
                code="compile_failed",
            )
        try:
            answer = msgspec.json.decode(output, type=CompileAnswer)
            if status == 0 and (answer.compiled is None) != (answer.failure is None):
                return answer
        except (msgspec.DecodeError, RecursionError):
            pass
        _log.error("a compile child ended with status %d: %s", status, errors.decode(errors="replace")[-500:])
        raise TartletError("the compile process has failed, which is a fault of the server's own", code="internal")


async def _write(child: Process, job: bytes) -> None:
    assert child.stdin is not None
    child.stdin.write(job)
    child.stdin.close()


async def _read_start(child: Process, most: int) -> bytes:
    """Read what a child writes, and keep the first of it."""
    assert child.stdout is not None
    kept = bytearray()
    while chunk := await child.stdout.read(65_536):
        kept += chunk[: most - len(kept)]
    return bytes(kept)


async def _read_end(child: Process, most: int) -> bytes:
    """Read what a child writes as errors, and keep the last of it."""
    assert child.stderr is not None
    kept = b""
    while chunk := await child.stderr.read(65_536):
        kept = (kept + chunk)[-most:]
    return kept
