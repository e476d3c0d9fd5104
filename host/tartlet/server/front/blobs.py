"""Uploaded programs as files: a folder for each tenant, in it by the SHA-256 of what is in them.

Tenants that upload the same share nothing, so that nobody can tell by the time that an upload or a deletion takes what
others have. Which tenant has which is written elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from tartlet.server.front.errors import ApiError
from tartlet.server.front.scarcity import storage_error

_PART = "upload-"

_Key: TypeAlias = tuple[str, str]
"""A tenant and a digest."""


@dataclass(slots=True)
class Blob:
    """A file of a tenant, while it is uploaded."""

    tenant: str
    digest: str
    path: Path
    num_bytes: int


@dataclass(slots=True)
class _Pin:
    """How many upload the same for a tenant now, and whether the file goes when none of them has kept it."""

    num_uploads: int
    is_nobodys: bool


class Blobs:
    """Files by tenant and digest in a folder of the front's own, on one event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pins: dict[_Key, _Pin] = {}

    def path(self, tenant: str, digest: str) -> Path:
        """Where a tenant's file of a digest lies, if there is one."""
        return self._folder / tenant / digest

    @contextlib.asynccontextmanager
    async def upload(self, tenant: str, chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[Blob]:
        """Write a tenant's file as it comes, and have it under its digest; call `keep` inside, or it is gone after it.

        Raises:
            ApiError: it is too large (413), or the disk is full (507) or fails (503). Nothing is left then.
        """
        blob, is_new = await self._receive(tenant, chunks, max_bytes)
        key = (tenant, blob.digest)
        pin = self._pins.setdefault(key, _Pin(0, is_new))
        pin.num_uploads += 1
        try:
            yield blob
        finally:
            pin.num_uploads -= 1
            if not pin.num_uploads:
                del self._pins[key]
                if pin.is_nobodys:
                    self._remove(key)

    def keep(self, blob: Blob) -> None:
        """Leave the file when the upload is over: the tenant has it now."""
        self._pins[blob.tenant, blob.digest].is_nobodys = False

    def discard(self, tenant: str, digest: str) -> None:
        """Remove a file that the tenant has no more; if it is being uploaded now, unless that keeps it."""
        pin = self._pins.get((tenant, digest))
        if pin is None:
            self._remove((tenant, digest))
        else:
            pin.is_nobodys = True

    def sweep(self, known: Collection[_Key]) -> int:
        """Remove all files but those, by tenants and digests, and what an upload has left that never ended. At start.

        Returns how many. Files that lie where all tenants' did once are put where they belong.
        """
        for tenant, digest in known:
            path, shared = self.path(tenant, digest), self._folder / digest
            if shared.is_file() and not path.exists():
                path.parent.mkdir(mode=0o700, exist_ok=True)
                os.link(shared, path)
        entries = [*self._folder.iterdir()]
        folders = [path for path in entries if path.is_dir()]
        gone = [path for path in entries if not path.is_dir()]
        gone += [path for folder in folders for path in folder.iterdir() if (folder.name, path.name) not in known]
        for path in gone:
            path.unlink(missing_ok=True)
        return len(gone)

    async def _receive(self, tenant: str, chunks: AsyncIterator[bytes], max_bytes: int) -> tuple[Blob, bool]:
        """Write the file. Returns whether it was not there before."""
        part: Path | None = None
        try:
            handle, name = tempfile.mkstemp(prefix=_PART, dir=self._folder)
            part = Path(name)
            with os.fdopen(handle, "wb") as file:
                digest, num_bytes = await _write(file, chunks, max_bytes)
                await asyncio.to_thread(os.fsync, file.fileno())
            path = self.path(tenant, digest)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            is_new = not path.exists()
            part.replace(path)
            return Blob(tenant, digest, path, num_bytes), is_new
        except OSError as error:
            raise storage_error(error) from error
        finally:
            if part is not None:
                part.unlink(missing_ok=True)

    def _remove(self, key: _Key) -> None:
        self.path(*key).unlink(missing_ok=True)


async def _write(file: IO[bytes], chunks: AsyncIterator[bytes], max_bytes: int) -> tuple[str, int]:
    sha256 = hashlib.sha256()
    num_bytes = 0
    async for chunk in chunks:
        num_bytes += len(chunk)
        if num_bytes > max_bytes:
            raise ApiError(
                413,
                "component_too_large",
                f"the program is larger than the {max_bytes:,} bytes that are allowed",
                limit="max_upload_bytes",
                used=num_bytes,
                allowed=max_bytes,
            )
        sha256.update(chunk)
        await asyncio.to_thread(file.write, chunk)
    await asyncio.to_thread(file.flush)
    return sha256.hexdigest(), num_bytes
