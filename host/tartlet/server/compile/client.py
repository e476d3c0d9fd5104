"""The front's side of compiling: a child for each upload, which is ended if it takes too long.

Nothing here loads Wasmtime or touches what was uploaded.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path

import msgspec

from tartlet.component_limits import ComponentLimits
from tartlet.errors import InvalidComponentError, TartletError
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

_MODULE = "tartlet.server.compile"
_ENVIRONMENT = ("HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TARTLET_HOME", "TMPDIR", "XDG_CACHE_HOME")
"""What the child is given of the front's environment, which may have secrets."""

_MAX_ANSWER_BYTES, _KEPT_ERROR_BYTES = 1 << 20, 4096
_OUT_OF_MEMORY = (b"memory allocation of", b"Cannot allocate memory", b"failed to spawn thread")

_log = logging.getLogger(__name__)


class CompileClient:
    """Compiles what tenants have uploaded, a few at once, each in a process of its own.

    Args:
        limits: What one child may use.
        children: Children at once; a tenant may have all of them but one.
        waiting_per_tenant: Uploads of a tenant that may wait for their turn.
    """

    def __init__(self, limits: CompileLimits | None = None, *, children: int = 2, waiting_per_tenant: int = 16) -> None:
        self._limits = limits or CompileLimits()
        self._turns = Turns(children, max(1, children - 1), waiting_per_tenant)

    async def compile(self, path: Path, limits: ComponentLimits, *, tenant: str) -> Compiled:
        """Check and compile a component into the cache of native code. Cancelled, it kills the child.

        Args:
            path: Where it lies. The file must stay as it is.
            limits: What may be in it.
            tenant: Who has uploaded it.

        Raises:
            InvalidComponentError: It is none that workers can run, or exceeds a limit: of `limits`, by a code such as
                `too_many_functions`; or of compiling, `compile_limit`.
            UnavailableError: Too many uploads of the tenant wait already.
            TartletError: It cannot be compiled for reasons that are not its own, such as a full disk (`not_kept`).
        """
        async with self._turns.turn(tenant):
            job = CompileJob(path=str(path), component=limits, limits=self._limits, parent=os.getpid())
            answer = await self._run(msgspec.json.encode(job))
        if answer.failure is not None:
            raise to_error(answer.failure)
        assert answer.compiled is not None
        return answer.compiled

    async def _run(self, job: bytes) -> CompileAnswer:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", _MODULE),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | {"MALLOC_ARENA_MAX": "2"},
            start_new_session=True,  # or Ctrl-C would end it before the front can
        )
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
                f"compiling the component has crashed the compiler ({signal.Signals(-status).name})",
                hint="No other program is affected. Please report it.",
                code="compile_failed",
            )
        try:
            if status == 0:
                return msgspec.json.decode(output, type=CompileAnswer)
        except msgspec.DecodeError:
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
