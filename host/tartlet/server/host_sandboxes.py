"""Runs programs on a `Host`: in a worker process, or in the front's own with `--in-process`."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from tartlet import control
from tartlet.errors import GuestError, LimitExceededError, ProgramError, TartletError
from tartlet.events import RunEvent, RunUsage
from tartlet.host import Host
from tartlet.languages.language import ProgramSource
from tartlet.languages.python import PYTHON
from tartlet.limits import Limits
from tartlet.run import Run
from tartlet.runtime.compiled_program import CompiledProgram
from tartlet.runtime.program import Program
from tartlet.server.raw_json import checked_json
from tartlet.server.requests import ProgramRef, RunRequest, SourceFile
from tartlet.server.worker.messages import MAX_RESULT_BYTES
from tartlet_engine.api import EngineStats, ModelInfo

_SHOWN_CHARS = 200
logger = logging.getLogger(__name__)

MOST_PROGRAMS = 256
"""That are kept loaded; others are loaded again, which is quick: their native code is on disk."""

_Key: TypeAlias = tuple[str, str, str]
"""A program's tenant, its file, and its name, which it knows."""


async def load_runner(host: Host) -> None:
    """Load the runner for Python source, and begin to keep spares: the first run need not wait for that."""
    try:
        await host.load(control.SOURCE, name="control")
    except TartletError as error:
        logger.warning("the runner for Python source cannot be loaded: %s", error)


class HostRun:
    """A run on the host. Implements `RunHandle`."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def run_id(self) -> str:
        """As in the request."""
        return self._run.id

    @property
    def usage(self) -> RunUsage:
        """As `Run.usage`."""
        return self._run.usage

    async def next_event(self) -> RunEvent | None:
        """As `Run.next_event`."""
        return await self._run.next_event()

    async def result_json(self) -> str:
        """As `Run.result`, but as JSON text. Raises LimitExceededError for one that is too long to parse."""
        text = await self._run.result_text()
        size = len(text)
        if size > MAX_RESULT_BYTES:
            raise LimitExceededError("output_limit", limit="result_bytes", used=size, allowed=MAX_RESULT_BYTES)
        try:
            return checked_json(text)
        except (ValueError, RecursionError) as error:
            raise GuestError(f"the program's result is not JSON: {error}: {text[:_SHOWN_CHARS]!r}") from None

    def cancel(self) -> None:
        """As `Run.cancel`."""
        self._run.cancel()


class HostSandboxes:
    """Runs programs on a host. Implements `Sandboxes`.

    Args:
        host: It is open, and stays the caller's to close.
        engine_lost: Set when the way to its engine is lost, after which all runs end at once; None: it never is.
        show_grant: Shows the engine a grant to act for a tenant with a weight; None: this one needs none.
    """

    def __init__(
        self,
        host: Host,
        engine_lost: asyncio.Event | None = None,
        show_grant: Callable[[str, float, bytes], None] | None = None,
    ) -> None:
        self.engine_lost = asyncio.Event() if engine_lost is None else engine_lost
        self._host = host
        self._show_grant = show_grant
        self._programs: dict[_Key, asyncio.Task[Program]] = {}  # the one used last at the end

    @property
    def models(self) -> Sequence[ModelInfo]:
        """Of the host."""
        return self._host.models

    @property
    def is_ready(self) -> bool:
        """Always: the engine is in this process."""
        return True

    async def started(self) -> None:
        """Nothing: the engine is in this process."""

    async def start(self, request: RunRequest, grant: bytes = b"") -> HostRun:
        """See `Sandboxes`.

        Args:
            request: The run.
            grant: To act for its tenant, if the engine asks for one.
        """
        if self._show_grant is not None:
            self._show_grant(request.tenant, request.weight, grant)
        program = await self._load(request.program)
        options: dict[str, Any] = {
            "limits": Limits(**request.limits),
            "seed": request.seed,
            "tenant": request.tenant,
            "run_id": request.run_id,
        }
        self._host.set_tenant(request.tenant, weight=request.weight)
        control = request.control
        if control is not None:
            run = await self._host.start_control(
                program,
                control.prompt,
                json.loads(control.config_json),
                chat=control.chat,
                max_tokens=control.max_tokens,
                temperature=control.temperature,
                **options,
            )
        else:
            named = {name: await self._load(ref) for name, ref in request.programs.items()}
            run = await self._host.start(program, json.loads(request.input_json), programs=named, **options)
        return HostRun(run)

    async def engine_stats(self) -> EngineStats | None:
        """Of the host's engine."""
        return self._host.stats().engine

    async def close(self) -> None:
        """Nothing: the host is the caller's."""

    async def _load(self, ref: ProgramRef) -> Program:
        """Load a program, once for all who ask meanwhile. Raises what `Host.load` raises."""
        key = (ref.tenant, ref.path, ref.name)
        loading = self._programs.pop(key, None)
        if loading is None or (loading.done() and (loading.cancelled() or loading.exception() is not None)):
            loading = asyncio.create_task(self._load_anew(ref))
            loading.add_done_callback(_note_failure)
        self._programs[key] = loading
        while len(self._programs) > MOST_PROGRAMS:
            self._forget_one()
        return await asyncio.shield(loading)

    def _forget_one(self) -> None:
        """Forget what was used longest ago, of the tenant that has the most: nobody can drive out others' programs."""
        ((tenant, _),) = Counter(tenant for tenant, _, _ in self._programs).most_common(1)
        del self._programs[next(key for key in self._programs if key[0] == tenant)]

    async def _load_anew(self, ref: ProgramRef) -> Program:
        if ref.is_compiled:
            compiled = CompiledProgram(Path(ref.path), ref.digest, ref.kind, ref.is_controller)
            return await self._host.load(compiled, name=ref.name)
        if ref.tenant:
            raise ProgramError("what a tenant has uploaded is not compiled here", code="internal")
        read = _read_source if ref.kind == "source" else _read_file
        return await self._host.load(await asyncio.to_thread(read, ref.path), name=ref.name)


def _note_failure(loading: asyncio.Task[Program]) -> None:
    """Whoever waits hears of it; all who did may have gone."""
    if not loading.cancelled():
        loading.exception()


def _read_source(path: str) -> ProgramSource:
    try:
        file = msgspec.json.decode(_read_file(path), type=SourceFile)
    except msgspec.DecodeError as error:
        raise ProgramError(f"the stored source cannot be read: {error}", code="not_found") from error
    return ProgramSource(PYTHON.name, file.main, file.files)


def _read_file(path: str) -> bytes:
    """A program as it is stored. Errors don't tell where: clients read them."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ProgramError(f"the stored program cannot be read: {error.strerror}", code="not_found") from error
