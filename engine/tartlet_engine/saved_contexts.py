"""The saved contexts of all tenants: by name, in memory or in a folder, with quotas and times to live.

With a folder, what is saved is held in memory until it has been written, on a thread of its own; then only the folder
has it. Each file is written under a temporary name and renamed, so a name always stands for a whole file or none. The
folder is looked at anew by every operation, under a lock: processes may share it.

    FOLDER / SHA-256 of the tenant / SHA-256 of the name .safetensors

Thread-safe; every method may wait for the disk.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from tartlet_engine.api import ErrorCode
from tartlet_engine.command_error import CommandError
from tartlet_engine.saved_file import SavedHeader, Snapshot, UnusableFileError, read_header, read_saved, write_saved

DEFAULT_BYTES = 1 << 30  # of one tenant
MAX_CONTEXTS = 4096  # of one tenant; a folder of more would take long to look at

_LOCK = ".lock"
_UNFINISHED = ".unfinished."
_SUFFIX = ".safetensors"

_log = logging.getLogger("tartlet_engine")

_Key = tuple[str, str]  # tenant, name
_FileState = tuple[int, int, int]  # inode, size, time of modification: what tells one file at a path from the next
_Headers = dict[Path, tuple[_FileState, SavedHeader | None]]  # by file, without `host_state`; None: it is unusable


@dataclass(frozen=True, slots=True)
class SavedEntry:
    """One saved context, perhaps without its `host_state`, and the bytes that it takes of its tenant's quota."""

    header: SavedHeader
    num_bytes: int


class SavedContexts:
    """Saved contexts by tenant and name."""

    def __init__(
        self,
        fingerprint: str,
        folder: Path | None = None,
        max_bytes: int = DEFAULT_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Keep what contexts of one model are saved.

        Args:
            fingerprint: of the model and its pages; what was saved under another one is not given out.
            folder: where files go; None keeps everything in memory.
            max_bytes: that one tenant may take.
            clock: seconds since the epoch.
        """
        self.fingerprint = fingerprint
        self._folder = folder
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()  # guards the two below; see `_locked`
        self._in_memory: dict[_Key, Snapshot] = {}  # without a folder, or not yet written
        self._headers: dict[Path, _Headers] = {}  # by folder of a tenant, as they were when it was last looked at
        self._writer = ThreadPoolExecutor(1, "tartlet-saved-writer")
        if folder is not None:
            self._writer.submit(self._sweep, folder)

    def now_ms(self) -> int:
        """Milliseconds since the epoch, by the clock that times to live go by."""
        return int(self._clock() * 1000)

    def put(self, snapshot: Snapshot, *, overwrite: bool) -> None:
        """Keep a context under its name. The file is written later; see `close`.

        Raises CommandError: `already-exists`, `quota-exceeded`, or `unavailable` if the disk is nearly full.
        """
        header = snapshot.header
        key = header.tenant, header.name
        num_bytes = snapshot.num_bytes
        with self._locked():
            others = self._entries(header.tenant)
            replaced = others.pop(self._path(*key), None)
            if replaced is not None and not overwrite:
                message = f"there is a saved context {header.name!r} already"
                hint = "Save with overwrite, take another name, or delete the old one."
                raise CommandError(ErrorCode.ALREADY_EXISTS, message, hint)
            self._require_room(num_bytes, others)
            self._in_memory[key] = snapshot
        if self._folder is not None:
            self._writer.submit(self._write, key)

    def get(self, tenant: str, name: str) -> Snapshot:
        """Return a saved context, read and checked.

        Raises CommandError: `not-found`, also for a file that is damaged, or `unsupported` for another model's.
        """
        with self._locked():
            path = self._path(tenant, name)
            if path not in self._entries(tenant):
                raise _not_found(name)
            if (tenant, name) in self._in_memory:
                return self._in_memory[tenant, name]
            file = path.open("rb", buffering=0)  # stays readable, whatever happens to its name
        with file:
            try:
                header = read_header(file)
                if (header.tenant, header.name) != (tenant, name):
                    raise UnusableFileError("it was saved under another name")
                if header.fingerprint != self.fingerprint:
                    raise self._other_model(header)
                return read_saved(file)
            except (UnusableFileError, OSError) as error:
                _log.warning("tenant=%s saved context %r cannot be used: %s", tenant, name, error)
                message = f"the saved context {name!r} cannot be used: {error}"
                raise CommandError(ErrorCode.NOT_FOUND, message, "Delete it, or save it again.") from error

    def all_of(self, tenant: str) -> list[SavedEntry]:
        """Return the saved contexts of a tenant by name, those of other models too, without those that are damaged."""
        with self._locked():
            entries = [entry for entry in self._entries(tenant).values() if isinstance(entry, SavedEntry)]
        return sorted(entries, key=lambda entry: entry.header.name)

    def delete(self, tenant: str, name: str) -> None:
        """Forget a saved context, damaged or not. Raises CommandError `not-found`."""
        with self._locked():
            if self._path(tenant, name) not in self._entries(tenant):
                raise _not_found(name)
            self._remove(tenant, name)

    def close(self) -> None:
        """Wait until everything has been written. Idempotent."""
        self._writer.shutdown()

    def _require_room(self, num_bytes: int, others: dict[Path, SavedEntry | int]) -> None:
        """Refuse what would take more than its tenant may have, or more than the disk has."""
        used = sum(entry.num_bytes if isinstance(entry, SavedEntry) else entry for entry in others.values())
        hint = "Delete saved contexts, or save with a time to live."
        if used + num_bytes > self._max_bytes:
            message = (
                f"saving needs {num_bytes:,} bytes; {used:,} of {self._max_bytes:,} are used by {len(others):,} others"
            )
            raise CommandError(ErrorCode.QUOTA_EXCEEDED, message, hint)
        if len(others) >= MAX_CONTEXTS:
            raise CommandError(ErrorCode.QUOTA_EXCEEDED, f"there are {MAX_CONTEXTS:,} saved contexts already", hint)
        if self._folder is not None:
            free = shutil.disk_usage(_made(self._folder)).free
            if free < 2 * num_bytes:
                message = f"saving needs {num_bytes:,} bytes, and the disk has only {free:,} left"
                raise CommandError(ErrorCode.UNAVAILABLE, message, "Tell the operator of this host.")

    def _entries(self, tenant: str) -> dict[Path, SavedEntry | int]:
        """Return what a tenant has by path, files that cannot be used with their size. Forgets what has expired."""
        entries: dict[Path, SavedEntry | int] = {}
        for path, header, num_bytes in self._files(tenant):
            if header is not None and self._has_expired(header):
                path.unlink(missing_ok=True)
            else:
                entries[path] = num_bytes if header is None else SavedEntry(header, num_bytes)
        # Of all tenants: who has gone asks for nothing any more, and would keep the memory.
        for owner, name in [key for key, snapshot in self._in_memory.items() if self._has_expired(snapshot.header)]:
            self._remove(owner, name)
            entries.pop(self._path(owner, name), None)
        for (owner, name), snapshot in self._in_memory.items():
            if owner == tenant:
                entries[self._path(tenant, name)] = SavedEntry(snapshot.header, snapshot.num_bytes)
        return entries

    def _has_expired(self, header: SavedHeader) -> bool:
        return header.expires_ms is not None and header.expires_ms <= self.now_ms()

    def _remove(self, tenant: str, name: str) -> None:
        self._in_memory.pop((tenant, name), None)
        if self._folder is not None:
            self._path(tenant, name).unlink(missing_ok=True)

    def _files(self, tenant: str) -> list[tuple[Path, SavedHeader | None, int]]:
        """Return a tenant's files: path, header if it can be read, and size."""
        files: list[tuple[Path, SavedHeader | None, int]] = []
        if self._folder is None:
            return files
        folder = self._tenant_folder(tenant)
        known_headers = self._headers.pop(folder, {})
        headers: _Headers = {}  # of the files that are there: those of others are forgotten
        for path in folder.glob(f"*{_SUFFIX}") if folder.is_dir() else ():
            with suppress(FileNotFoundError), path.open("rb", buffering=0) as file:  # another process deletes too
                status = os.fstat(file.fileno())
                state = (status.st_ino, status.st_size, status.st_mtime_ns)
                known = known_headers.get(path)
                if known is None or known[0] != state:
                    known = (state, self._header_of(path, file))
                headers[path] = known
                files.append((path, known[1], status.st_size))
        if headers:
            self._headers[folder] = headers
        return files

    def _header_of(self, path: Path, file: IO[bytes]) -> SavedHeader | None:
        """Read what a file says that it is, but for `host_state`; None if it does not belong there, or is unusable."""
        with suppress(UnusableFileError):
            header = read_header(file)
            if self._path(header.tenant, header.name) == path:
                return msgspec.structs.replace(header, host_state="")  # it may be large, and only `get` needs it
        return None

    def _write(self, key: _Key) -> None:
        """Write a file, unless the context is deleted or replaced meanwhile. On the writer's thread.

        What is written is looked up now, so that what has been replaced while it waited takes no memory.
        """
        path = self._path(*key)
        snapshot = self._in_memory.get(key)
        if snapshot is None:
            return
        try:
            descriptor, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=_made(path.parent))
            try:
                with os.fdopen(descriptor, "wb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed: `_sweep` of another process spares it
                    write_saved(file, snapshot)
                    file.flush()
                    os.fsync(file.fileno())
                    with self._locked():
                        if self._in_memory.get(key) is snapshot:
                            os.replace(unfinished, path)
                            del self._in_memory[key]
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(unfinished)
        except OSError as error:
            _log.error("tenant=%s saved context %r stays in memory only: it cannot be written: %s", *key, error)
        except Exception:  # nobody looks at what the writer's thread returns
            _log.exception("tenant=%s saved context %r stays in memory only", *key)

    def _sweep(self, folder: Path) -> None:
        """Delete what has expired, and what processes that were killed have left unfinished. On the writer's thread."""
        if not folder.is_dir():
            return
        for path in folder.glob(f"*/{_UNFINISHED}*"):
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while another process still writes it
                path.unlink()
        for path in folder.glob(f"*/*{_SUFFIX}"):
            with self._locked(), suppress(UnusableFileError, OSError), path.open("rb", buffering=0) as file:
                if self._has_expired(read_header(file)):
                    path.unlink()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep the other threads away, and with a folder the other processes that share it."""
        with self._lock:
            if self._folder is None:
                yield
                return
            with (_made(self._folder) / _LOCK).open("wb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield

    def _path(self, tenant: str, name: str) -> Path:
        return self._tenant_folder(tenant) / f"{_digest(name)}{_SUFFIX}"

    def _tenant_folder(self, tenant: str) -> Path:
        return (self._folder or Path()) / _digest(tenant)

    def _other_model(self, header: SavedHeader) -> CommandError:
        message = (
            f"{header.name!r} was saved with the model {header.model}, whose weights, format or pages are not those "
            "of the model that is served now"
        )
        return CommandError(ErrorCode.UNSUPPORTED, message, "Serve that model as it was then, or fill a new context.")


def _not_found(name: str) -> CommandError:
    return CommandError(ErrorCode.NOT_FOUND, f"there is no saved context {name!r}", "It may have expired.")


def _digest(text: str) -> str:
    """A file name for any text: names of tenants and contexts are never part of a path as they are."""
    return hashlib.sha256(text.encode()).hexdigest()


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
