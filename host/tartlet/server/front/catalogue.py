"""The programs that tenants have uploaded: their files, what is known of them, and what they are called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from tartlet.server.front.blobs import Blobs
from tartlet.server.front.code_store import CodeStore
from tartlet.server.front.compiling import CompilingSandboxes
from tartlet.server.front.errors import ApiError
from tartlet.server.front.known_tenants import KnownTenants
from tartlet.server.front.storage import InferletRecord, Storage
from tartlet.server.front.storage.names import check_name
from tartlet.server.requests import Parameter, ProgramFacts, ProgramRef

Kind: TypeAlias = Literal["component", "source"]
MOST_FACTS, MOST_CHARS = 200, 300
"""Of what a program says of itself: parameters, imports, and characters of each."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The programs of all tenants. Each sees its own alone."""

    storage: Storage
    blobs: Blobs
    code: CodeStore
    sandboxes: CompilingSandboxes
    tenants: KnownTenants
    max_upload_bytes: int
    """The largest program, of tenants that have no limit of their own."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """What stands in the database and which files there are is changed together."""

    async def upload(
        self, tenant: str, kind: Kind, chunks: AsyncIterator[bytes], name: str | None = None
    ) -> tuple[InferletRecord, bool]:
        """Take in a program, and let a name stand for it. Returns what is known of it, and whether it is new.

        Args:
            tenant: whose it is.
            kind: a component, or source, which is a `SourceFile` as JSON.
            chunks: the file.
            name: `name` or `name@version`; None: its digest is its only name.

        Raises:
            ApiError: it is too large, or cannot be stored.
            ProgramError: it is no program that can be run, or there is too much in it.
            UnavailableError: too many of the tenant's uploads are being compiled.
            QuotaError: the tenant has too much already.
            ConfigError: it cannot have that name.
        """
        if name is not None:
            check_name(name)  # before anything is read, compiled and stored
        _, limits = await self.tenants.get(tenant)
        max_bytes = self.max_upload_bytes if limits.upload_bytes is None else limits.upload_bytes
        async with self.blobs.upload(tenant, chunks, max_bytes) as blob:
            facts = await self.sandboxes.describe(
                ProgramRef(blob.digest, str(blob.path), kind, name or blob.digest[:12], tenant)
            )
            async with self._lock:
                is_new = await self.storage.inferlets.put(
                    tenant,
                    blob.digest,
                    kind,
                    blob.num_bytes,
                    _bounded(facts),
                    most=limits.inferlets,
                    most_bytes=limits.inferlet_bytes,
                )
                self.blobs.keep(blob)
        if name is not None:
            await self.storage.names.tag(tenant, name, blob.digest, most=limits.names)
        return await self.storage.inferlets.get(tenant, blob.digest), is_new

    async def get(self, tenant: str, ref: str) -> InferletRecord:
        """What is known of an inferlet. Raises NotFoundError."""
        return await self.storage.inferlets.find(tenant, ref)

    async def program(self, tenant: str, ref: str) -> ProgramRef:
        """An inferlet, to be run. Raises NotFoundError."""
        return self.ref_of(await self.get(tenant, ref), ref)

    async def runnable(self, tenant: str, ref: str, *, steers: bool = False) -> ProgramRef:
        """An inferlet to be started by itself, or a controller that steers a generation.

        Raises:
            NotFoundError: there is none.
            ApiError: it is the one where the other is asked for.
        """
        record = await self.get(tenant, ref)
        if steers and not record.facts.is_controller:
            raise ApiError(400, "not_a_controller", f"{ref} is no controller, so it has no `control`", param="control")
        if not steers and not record.facts.is_inferlet:
            hint = 'It needs a generation to steer: "control": {"prompt": "..."}.'
            raise ApiError(400, "not_an_inferlet", f"{ref} is a controller", hint=hint, param="control")
        return self.ref_of(record, ref)

    async def programs(self, tenant: str, names: Iterable[str]) -> dict[str, ProgramRef]:
        """Programs that a run can ask for by these names. Raises NotFoundError."""
        return {name: await self.program(tenant, name) for name in names}

    def ref_of(self, record: InferletRecord, name: str) -> ProgramRef:
        """An inferlet of which this is known, under a name for logs and errors."""
        return ProgramRef(
            record.digest,
            str(self.blobs.path(record.tenant, record.digest)),
            record.kind,
            f"{record.tenant}/{name}",
            record.tenant,
            record.facts.is_controller,
        )

    async def tag(self, tenant: str, name: str, ref: str) -> InferletRecord:
        """Let a name stand for an inferlet, whatever it stood for before.

        Raises: NotFoundError, ConfigError (it cannot be a name), QuotaError.
        """
        _, limits = await self.tenants.get(tenant)
        digest = await self.storage.names.resolve(tenant, ref)
        await self.storage.names.tag(tenant, name, digest, most=limits.names)
        return await self.storage.inferlets.get(tenant, digest)

    async def delete(self, tenant: str, ref: str) -> InferletRecord:
        """Delete an inferlet with all its names; its runs go on. Raises NotFoundError."""
        record = await self.get(tenant, ref)
        async with self._lock:
            await self.storage.inferlets.delete(tenant, record.digest)
            self.blobs.discard(tenant, record.digest)
            self.code.drop(tenant, record.digest)
        return record


def _bounded(facts: ProgramFacts) -> ProgramFacts:
    """What is kept and told of a program, however much of it there is."""
    parameters = facts.parameters
    if parameters is not None:
        parameters = tuple(
            Parameter(each.name[:MOST_CHARS], each.is_required, each.annotation[:MOST_CHARS], each.default[:MOST_CHARS])
            for each in parameters[:MOST_FACTS]
        )
    return msgspec.structs.replace(
        facts,
        parameters=parameters,
        imports=tuple(name[:MOST_CHARS] for name in facts.imports[:MOST_FACTS]),
        description=facts.description[:MOST_CHARS],
    )
