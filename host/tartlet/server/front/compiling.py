"""Sees to it that a component's native code is there before a worker needs it, so that no worker ever compiles one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tartlet.component_limits import ComponentLimits
from tartlet.server.compile.client import CompileClient
from tartlet.server.requests import ProgramFacts, ProgramRef, RunRequest
from tartlet.server.sandboxes import RunHandle, Sandboxes
from tartlet_engine.api import EngineStats, ModelInfo

LimitsOf = Callable[[str], Awaitable[ComponentLimits]]
"""What may be in a component of a tenant."""


class CompilingSandboxes:
    """Sandboxes whose components are compiled by children. Implements `Sandboxes`; does not own `inner`.

    Native code that the cache has dropped is compiled again when a run needs it. Should it be dropped between that and
    the run's start, the worker compiles it, which has been found to be within its limits.
    """

    def __init__(self, inner: Sandboxes, client: CompileClient, limits_of: LimitsOf) -> None:
        self._inner = inner
        self._client = client
        self._limits_of = limits_of
        self._example: tuple[str, Path] | None = None  # a digest, and where its native code lies

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

    @property
    def num_live_runs(self) -> int:
        """See `Sandboxes`."""
        return self._inner.num_live_runs

    async def describe_upload(self, program: ProgramRef, tenant: str) -> ProgramFacts:
        """Tell what somebody has uploaded, after a child has checked and compiled it, if it is a component.

        Raises: what `CompileClient.compile` and `describe` raise.
        """
        if program.kind == "component":
            return await self._compile(program, tenant)
        return await self._inner.describe(program)

    async def describe(self, program: ProgramRef) -> ProgramFacts:
        """See `Sandboxes`; for programs that have been uploaded already."""
        return await self._inner.describe(program)

    async def start(self, request: RunRequest) -> RunHandle:
        """See `Sandboxes`. Raises also what `CompileClient.compile` raises."""
        for program in (request.program, *request.programs.values()):
            if program.kind == "component" and not self._is_compiled(program.digest):
                await self._compile(program, request.tenant)
        return await self._inner.start(request)

    async def engine_stats(self) -> EngineStats | None:
        """See `Sandboxes`."""
        return await self._inner.engine_stats()

    async def close(self) -> None:
        """Nothing: what is inside is closed by whoever opened it."""

    async def _compile(self, program: ProgramRef, tenant: str) -> ProgramFacts:
        compiled = await self._client.compile(Path(program.path), await self._limits_of(tenant), tenant=tenant)
        self._example = program.digest, Path(compiled.native_path)
        return compiled.facts

    def _is_compiled(self, digest: str) -> bool:
        """Whether there is native code of a component. All files are called alike but for the digest."""
        if self._example is None:
            return False
        known_digest, path = self._example
        return path.with_name(path.name.replace(known_digest, digest)).is_file()
