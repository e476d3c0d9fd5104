"""Folders of files that could be made again: compiled kernels, packed models.

They lie in the user's cache directory, or where TARTLET_HOME says. The last use of a file is its time of modification,
so that processes can share a folder.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import platformdirs


def cache_folder(name: str) -> Path:
    """Return a folder that nobody else may write to, since what lies there is trusted. Raises OSError if it cannot."""
    configured = os.environ.get("TARTLET_HOME")
    home = Path(configured).expanduser() if configured else platformdirs.user_cache_path("tartlet", appauthor=False)
    folder = home.absolute() / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def mark_used(path: Path) -> None:
    """Note that a file is used now. A disk that is read-only is no reason to fail."""
    with suppress(OSError):
        os.utime(path)


def shrink(folder: Path, max_bytes: int) -> None:
    """Delete the files used longest ago until the rest takes `max_bytes`; the last one stays however large it is."""
    files = []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another process deletes too
            status = path.lstat()
            files.append((status.st_mtime_ns, status.st_size, path))
    total_bytes = 0
    for position, (_, size, path) in enumerate(sorted(files, reverse=True)):
        total_bytes += size
        if total_bytes > max_bytes and position > 0:
            with suppress(OSError):
                path.unlink()
                total_bytes -= size
