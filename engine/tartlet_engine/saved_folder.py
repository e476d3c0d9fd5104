"""The folder where saved contexts lie: whose file is which, and how files come and go.

    FOLDER / SHA-256 of the tenant / SHA-256 of the name .safetensors

Each file is written under a temporary name and renamed, so a name always stands for a whole file or none. The folder is
looked at anew by every operation: processes may share it. What lies there and is no file of ours is left alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from tartlet_engine.saved_file import SavedHeader, Snapshot, UnusableFileError, read_header, write_saved

_LOCK = ".lock"
_UNFINISHED = ".unfinished."
_SUFFIX = ".safetensors"

_FileState = tuple[int, int, int]  # inode, size, time of modification: what tells one file at a path from the next
_Headers = dict[Path, tuple[_FileState, SavedHeader | None]]  # by file, without `host_state`; None: it is unusable


@dataclass(frozen=True, slots=True)
class SavedFile:
    """One file of a tenant."""

    place: Path  # in the folder
    header: SavedHeader | None  # without `host_state`; None: it does not belong there, or is unusable
    num_bytes: int


def place_of(tenant: str, name: str) -> Path:
    """Return where in the folder a context lies. Names of tenants and contexts are no part of a path as they are."""
    return Path(_digest(tenant)) / f"{_digest(name)}{_SUFFIX}"


class SavedFolder:
    """The files of all tenants. All but `writing` and `sweep` is called inside `locked`, by one thread at a time."""

    def __init__(self, root: Path) -> None:
        """Use a folder, which is made when it is needed."""
        self.root = root
        self._headers: dict[Path, _Headers] = {}  # by folder of a tenant, as they were when it was last looked at

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the other processes that share the folder away."""
        with (_made(self.root) / _LOCK).open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def free_bytes(self) -> int:
        """Return what the disk has left."""
        return shutil.disk_usage(_made(self.root)).free

    def open(self, place: Path) -> IO[bytes]:
        """Open a file. It stays readable, whatever happens to its name."""
        return (self.root / place).open("rb", buffering=0)

    def remove(self, place: Path) -> None:
        """Delete a file, if it is there."""
        (self.root / place).unlink(missing_ok=True)

    def files(self, tenant: str) -> list[SavedFile]:
        """Return a tenant's files."""
        folder = self.root / _digest(tenant)
        known_headers = self._headers.pop(folder, {})
        headers: _Headers = {}  # of the files that are there: those of others are forgotten
        files = []
        for path in _saved_files(folder):
            with suppress(FileNotFoundError), path.open("rb", buffering=0) as file:  # another process deletes too
                status = os.fstat(file.fileno())
                state = (status.st_ino, status.st_size, status.st_mtime_ns)
                known = known_headers.get(path)
                if known is None or known[0] != state:
                    known = (state, self._header_of(path, file))
                headers[path] = known
                files.append(SavedFile(path.relative_to(self.root), known[1], status.st_size))
        if headers:
            self._headers[folder] = headers
        return files

    @contextmanager
    def writing(self, snapshot: Snapshot) -> Iterator[Callable[[], None]]:
        """Write a file under a temporary name. What this gives renames it; otherwise it is gone at the end.

        Raises OSError if it cannot be written.
        """
        path = self.root / place_of(snapshot.header.tenant, snapshot.header.name)
        descriptor, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=_made(path.parent))
        try:
            with os.fdopen(descriptor, "wb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed: `sweep` of another process spares it
                write_saved(file, snapshot)
                file.flush()
                os.fsync(file.fileno())
                yield lambda: os.replace(unfinished, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(unfinished)

    def sweep(
        self, has_expired: Callable[[SavedHeader], bool], locked: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Delete what has expired, of all tenants, and what processes that were killed have left unfinished.

        Args:
            has_expired: tells whether a file is to go.
            locked: taken for each file, so that nobody has to wait long.
        """
        if not self.root.is_dir():
            return
        for path in self.root.glob(f"*/{_UNFINISHED}*"):
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while another process still writes it
                path.unlink()
        for folder in self.root.iterdir():
            for path in _saved_files(folder):
                with locked(), suppress(UnusableFileError, OSError), path.open("rb", buffering=0) as file:
                    if has_expired(read_header(file)):
                        path.unlink()

    def _header_of(self, path: Path, file: IO[bytes]) -> SavedHeader | None:
        """Read what a file says that it is, but for `host_state`; None if it does not belong there, or is unusable."""
        with suppress(UnusableFileError):
            header = read_header(file)
            if self.root / place_of(header.tenant, header.name) == path:
                return msgspec.structs.replace(header, host_state="")  # it may be large, and only opening needs it
        return None


def _saved_files(folder: Path) -> list[Path]:
    """Return the files of one tenant's folder. A folder that somebody has put among them is none."""
    return [path for path in folder.glob(f"*{_SUFFIX}") if path.is_file()] if folder.is_dir() else []


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
