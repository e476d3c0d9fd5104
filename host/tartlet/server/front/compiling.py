"""Sees to it that a program is compiled before a worker needs it: no worker parses or compiles what tenants upload."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from tartlet.component_limits import ComponentLimits
from tartlet.errors import UnavailableError
from tartlet.server.compile.client import CompileClient
from tartlet.server.front.code_store import CodeStore
from tartlet.server.requests import ProgramFacts, ProgramRef, RunRequest
from tartlet.server.sandboxes import RunHandle, Sandboxes
from tartlet_engine.api import EngineStats, ModelInfo

LimitsOf = Callable[[str], Awaitable[ComponentLimits]]
"""What may be in a component of a tenant."""


class CompilingSandboxes:
    """Sandboxes whose programs are compiled by children. Implements `Sandboxes`; does not own `inner`.

    What the store has dropped is compiled again when a run needs it.
    """

    def __init__(self, inner: Sandboxes, client: CompileClient, limits_of: LimitsOf, code: CodeStore) -> None:
        self._inner = inner
        self._client = client
        self._limits_of = limits_of
        self._code = code

    @property
    def models(self) -> Sequence[ModelInfo]:
        """See `Sandboxes`."""
        return self._inner.models

    @property
    def is_ready(self) -> bool:
        """See `Sandboxes`."""
        return self._inner.is_ready

    async def started(self) -> None:
        """See `Sandboxes`."""
        await self._inner.started()

    async def describe(self, program: ProgramRef) -> ProgramFacts:
        """Tell what a tenant has uploaded, after a child has checked and compiled it.

        Raises: what `CompileClient.compile` raises; `UnavailableError` if there is no runner for source yet.
        """
        facts, _ = await self._compile(program)
        return facts

    async def start(self, request: RunRequest) -> RunHandle:
        """See `Sandboxes`. Raises also what `describe` raises."""
        program = await self._compiled(request.program)
        programs = {name: await self._compiled(each) for name, each in request.programs.items()}
        return await self._inner.start(msgspec.structs.replace(request, program=program, programs=programs))

    async def engine_stats(self) -> EngineStats | None:
        """See `Sandboxes`."""
        return await self._inner.engine_stats()

    async def close(self) -> None:
        """Nothing: what is inside is closed by whoever opened it."""

    async def _compiled(self, program: ProgramRef) -> ProgramRef:
        """A program as workers can load it; the server's own are what they are."""
        if not program.tenant:
            return program
        path = self._code.find(program)
        if path is None:
            _, path = await self._compile(program)
        return msgspec.structs.replace(program, path=str(path), is_compiled=True)

    async def _compile(self, program: ProgramRef) -> tuple[ProgramFacts, Path]:
        if program.kind == "source" and not self._inner.is_ready:
            raise UnavailableError("the server is not ready to compile source", hint="Ask a little later.")
        compiled = await self._client.compile(
            Path(program.path),
            await self._limits_of(program.tenant),
            tenant=program.tenant,
            folder=self._code.folder(program.tenant),
            kind=program.kind,
        )
        path = Path(compiled.code_path)
        self._code.note(program, path)
        await asyncio.to_thread(self._code.shrink)
        return compiled.facts, path
