"""The saved contexts of all tenants: by name, in memory or in a folder, with quotas and times to live.

With a folder (`saved_folder.py`), what is saved is held in memory until it has been written, on a thread of its own;
then only the folder has it. Processes may share the folder.

Thread-safe; every method may wait for the disk.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tartlet_engine.api import ErrorCode
from tartlet_engine.command_error import CommandError
from tartlet_engine.saved_file import SavedHeader, Snapshot, UnusableFileError, read_header, read_saved
from tartlet_engine.saved_folder import SavedFolder, place_of

DEFAULT_BYTES = 1 << 30  # of one tenant
MAX_CONTEXTS = 4096  # of one tenant; a folder of more would take long to look at
SWEEP_S = 3600.0  # between two looks at all tenants' files, for those who do not come back

_log = logging.getLogger("tartlet_engine")

_Key = tuple[str, str]  # tenant, name


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
        self._folder = None if folder is None else SavedFolder(folder)
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()  # guards all below, and the folder; see `_locked`
        self._in_memory: dict[_Key, Snapshot] = {}  # without a folder, or not yet written
        self._swept_at: float | None = None
        self._writer = ThreadPoolExecutor(1, "tartlet-saved-writer")
        self._sweep_if_due()

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
            replaced = others.pop(place_of(*key), None)
            if replaced is not None and not overwrite:
                message = f"there is a saved context {header.name!r} already"
                hint = "Save with overwrite, take another name, or delete the old one."
                raise CommandError(ErrorCode.ALREADY_EXISTS, message, hint)
            self._require_room(num_bytes, others)
            self._in_memory[key] = snapshot
        if self._folder is not None:
            self._writer.submit(self._write, key)
            self._sweep_if_due()

    def get(self, tenant: str, name: str) -> Snapshot:
        """Return a saved context, read and checked.

        Raises CommandError: `not-found`, also for a file that is damaged, or `unsupported` for another model's.
        """
        with self._locked():
            place = place_of(tenant, name)
            if place not in self._entries(tenant):
                raise _not_found(name)
            if (tenant, name) in self._in_memory:
                return self._in_memory[tenant, name]
            assert self._folder is not None, "only a folder has what is not in memory"
            file = self._folder.open(place)
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
            if place_of(tenant, name) not in self._entries(tenant):
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
            free = self._folder.free_bytes()
            if free < 2 * num_bytes:
                message = f"saving needs {num_bytes:,} bytes, and the disk has only {free:,} left"
                raise CommandError(ErrorCode.UNAVAILABLE, message, "Tell the operator of this host.")

    def _entries(self, tenant: str) -> dict[Path, SavedEntry | int]:
        """Return what a tenant has by place, files that cannot be used with their size. Forgets what has expired."""
        entries: dict[Path, SavedEntry | int] = {}
        folder = self._folder
        for file in () if folder is None else folder.files(tenant):
            if file.header is None:
                entries[file.place] = file.num_bytes
            elif not self._has_expired(file.header):
                entries[file.place] = SavedEntry(file.header, file.num_bytes)
            elif folder is not None:
                folder.remove(file.place)
        # Of all tenants: who has gone asks for nothing any more, and would keep the memory.
        for owner, name in [key for key, snapshot in self._in_memory.items() if self._has_expired(snapshot.header)]:
            self._remove(owner, name)
            entries.pop(place_of(owner, name), None)
        for (owner, name), snapshot in self._in_memory.items():
            if owner == tenant:
                entries[place_of(tenant, name)] = SavedEntry(snapshot.header, snapshot.num_bytes)
        return entries

    def _has_expired(self, header: SavedHeader) -> bool:
        return header.expires_ms is not None and header.expires_ms <= self.now_ms()

    def _remove(self, tenant: str, name: str) -> None:
        self._in_memory.pop((tenant, name), None)
        if self._folder is not None:
            self._folder.remove(place_of(tenant, name))

    def _write(self, key: _Key) -> None:
        """Write a file, unless the context is deleted or replaced meanwhile. On the writer's thread.

        What is written is looked up now, so that what has been replaced while it waited takes no memory.
        """
        snapshot = self._in_memory.get(key)
        if snapshot is None or self._folder is None:
            return
        try:
            with self._folder.writing(snapshot) as rename, self._locked():
                if self._in_memory.get(key) is snapshot:
                    rename()
                    del self._in_memory[key]
        except OSError as error:
            _log.error("tenant=%s saved context %r stays in memory only: it cannot be written: %s", *key, error)
        except Exception:  # nobody looks at what the writer's thread returns
            _log.exception("tenant=%s saved context %r stays in memory only", *key)

    def _sweep_if_due(self) -> None:
        """Let the writer's thread look for what has expired, of whichever tenant, if the last time is long ago."""
        now = self._clock()
        if self._folder is not None and (self._swept_at is None or now - self._swept_at >= SWEEP_S):
            self._swept_at = now
            self._writer.submit(self._folder.sweep, self._has_expired, self._locked)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep the other threads away, and with a folder the other processes that share it."""
        with self._lock:
            if self._folder is None:
                yield
            else:
                with self._folder.locked():
                    yield

    def _other_model(self, header: SavedHeader) -> CommandError:
        message = (
            f"{header.name!r} was saved with the model {header.model}, whose weights, format or pages are not those "
            "of the model that is served now"
        )
        return CommandError(ErrorCode.UNSUPPORTED, message, "Serve that model as it was then, or fill a new context.")


def _not_found(name: str) -> CommandError:
    return CommandError(ErrorCode.NOT_FOUND, f"there is no saved context {name!r}", "It may have expired.")
