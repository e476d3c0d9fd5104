"""Uploaded programs as files, by the SHA-256 of what is in them. Which tenant has which is written elsewhere.

Tenants that upload the same share a file. Nobody learns that from here: an upload is read to its end in any case.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tartlet.server.front.errors import ApiError

_PART = "upload-"
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(slots=True)
class Blob:
    """A file of a digest, while somebody uploads it."""

    digest: str
    path: Path
    num_bytes: int


@dataclass(slots=True)
class _Pin:
    """How many are uploading the same now, and whether the file goes when none of them has kept it."""

    num_uploads: int
    is_nobodys: bool


class Blobs:
    """Files by digest in a folder of the front's own, on one event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pins: dict[str, _Pin] = {}

    def path(self, digest: str) -> Path:
        """Where the file of a digest lies, if there is one."""
        return self._folder / digest

    @contextlib.asynccontextmanager
    async def upload(self, chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[Blob]:
        """Write a file as it comes, and have it under its digest; call `keep` inside, or it is gone after it.

        Raises:
            ApiError: it is too large (413), or the disk is full (507) or fails (503). Nothing is left then.
        """
        blob, is_new = await self._receive(chunks, max_bytes)
        pin = self._pins.setdefault(blob.digest, _Pin(0, is_new))
        pin.num_uploads += 1
        try:
            yield blob
        finally:
            pin.num_uploads -= 1
            if not pin.num_uploads:
                del self._pins[blob.digest]
                if pin.is_nobodys:
                    self._remove(blob.digest)

    def keep(self, blob: Blob) -> None:
        """Leave the file when the upload is over: a tenant has it now."""
        self._pins[blob.digest].is_nobodys = False

    def discard(self, digest: str) -> None:
        """Remove a file that no tenant has any more; if somebody is uploading it now, unless they keep it."""
        pin = self._pins.get(digest)
        if pin is None:
            self._remove(digest)
        else:
            pin.is_nobodys = True

    def sweep(self, digests: Iterable[str]) -> int:
        """Remove all files but those, and what an upload has left that never ended. Returns how many. At start."""
        known = {*digests}
        gone = [path for path in self._folder.iterdir() if path.name not in known]
        for path in gone:
            path.unlink(missing_ok=True)
        return len(gone)

    async def _receive(self, chunks: AsyncIterator[bytes], max_bytes: int) -> tuple[Blob, bool]:
        """Write the file. Returns whether it was not there before."""
        part: Path | None = None
        try:
            handle, name = tempfile.mkstemp(prefix=_PART, dir=self._folder)
            part = Path(name)
            with os.fdopen(handle, "wb") as file:
                digest, num_bytes = await _write(file, chunks, max_bytes)
                await asyncio.to_thread(os.fsync, file.fileno())
            path = self.path(digest)
            is_new = not path.exists()
            part.replace(path)
            return Blob(digest, path, num_bytes), is_new
        except OSError as error:
            raise storage_error(error) from error
        finally:
            if part is not None:
                part.unlink(missing_ok=True)

    def _remove(self, digest: str) -> None:
        self.path(digest).unlink(missing_ok=True)


def storage_error(error: OSError) -> ApiError:
    """The error for a disk that is full or fails. What exactly is wrong is the operator's business."""
    if error.errno in _FULL:
        return ApiError(507, "storage_full", "the server's disk is full", hint="Tell the server's operator.")
    return ApiError(503, "storage_failed", "the server's disk fails", hint="Tell the server's operator.")


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
