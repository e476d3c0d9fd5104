"""The folder in which the sockets of one server lie: new at each start, and swept when its server is dead."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from tartlet.errors import ConfigError

MOST_PATH_BYTES = 107
"""Of a Unix socket's path: what the kernel has room for."""

_PREFIX = "tartlet-sockets-"
_LOCK = "lock"
_LONGEST_NAME = 24  # of a socket in the folder


class SocketFolder:
    """A folder of mode 0700 with a name that is hard to guess. It goes with `close`, or is swept by the next server.

    A lock file in it is locked for as long as the server lives: the system unlocks it when the process ends, in
    whichever way.

    Args:
        parent: Where to make it; by default the user's runtime folder, or that for temporary files.

    Raises:
        ConfigError: It cannot be made, or the paths of sockets in it would be too long.
    """

    def __init__(self, parent: Path | None = None) -> None:
        parent = _parent() if parent is None else parent
        try:
            sweep(parent)
            self.path, self._lock = _make(parent)
        except OSError as error:
            raise ConfigError(f"cannot make a folder for sockets in {parent}: {error.strerror}", hint=_HINT) from None

    def socket_path(self, name: str) -> Path:
        """Where the socket of that name lies; at most 24 characters."""
        assert len(name) <= _LONGEST_NAME, name
        return self.path / name

    def close(self) -> None:
        """Remove the folder with all that is in it. Idempotent."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> SocketFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_HINT = "Let XDG_RUNTIME_DIR or TMPDIR name a folder of your own with a short path."


def sweep(parent: Path) -> int:
    """Remove the folders in `parent` that servers of this user have left behind, and count them."""
    return sum(_remove_if_dead(folder) for folder in _own_folders(parent))


def _parent() -> Path:
    """The first of the usual places whose path is short enough. Raises ConfigError if none is."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    for place in (runtime, tempfile.gettempdir(), "/tmp"):
        length = len(os.fsencode(place)) + 1 + len(_new_name()) + 1 + _LONGEST_NAME
        if os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK) and length <= MOST_PATH_BYTES:
            return Path(place).absolute()
    raise ConfigError("there is no folder for sockets whose path is short enough", hint=_HINT)


def _new_name() -> str:
    return f"{_PREFIX}{secrets.token_hex(6)}"


def _make(parent: Path) -> tuple[Path, int | None]:
    """Make a folder with a lock that is held, and give both."""
    while True:
        folder = parent / _new_name()
        folder.mkdir(mode=0o700)
        # Somebody who sweeps may come before the lock is held, and take the folder away.
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            if _try_lock(lock) and os.fstat(lock).st_nlink:
                return folder, lock
            os.close(lock)


def _own_folders(parent: Path) -> Iterator[Path]:
    """Folders for sockets that belong to this user. Others' are left alone, whatever they are called."""
    for entry in os.scandir(parent):
        if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) == 0o700:
                    yield Path(entry.path)


def _remove_if_dead(folder: Path) -> bool:
    """Remove a folder whose lock nobody holds. Tells whether it did."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return _remove_if_empty(folder)
    try:
        if not _try_lock(lock):
            return False
        shutil.rmtree(folder, ignore_errors=True)
        return True
    finally:
        os.close(lock)


def _remove_if_empty(folder: Path) -> bool:
    """Remove what a server has made that did not get as far as a lock."""
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
