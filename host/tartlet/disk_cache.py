"""Folders of files that could be made again. When they grow too large, the files used longest ago go.

The last use of a file is its time of modification, so that processes can share a folder.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path


def mark_used(path: Path) -> None:
    """Note that a file is used now. A disk that is read-only is no reason to fail."""
    with suppress(OSError):
        path.touch()


def shrink(folder: Path, pattern: str, max_bytes: int, keep: Collection[Path] = ()) -> None:
    """Delete the files that were used longest ago, until the rest takes at most `max_bytes`.

    The file used last stays however large it is, and so do those in `keep`. Cost: one `stat` per file.

    Args:
        folder: Where they lie; subfolders are left alone.
        pattern: Which files count, such as `*.wasm`.
        max_bytes: How many bytes may stay.
        keep: Files that are in use.
    """
    used_bytes = 0
    for position, (_, size, path) in enumerate(_latest_first(folder, pattern)):
        used_bytes += size
        if used_bytes > max_bytes and position > 0 and path not in keep:
            with suppress(OSError):
                path.unlink(missing_ok=True)
                used_bytes -= size


def _latest_first(folder: Path, pattern: str) -> list[tuple[int, int, Path]]:
    """Time of the last use in ns, size in bytes and path of the files, the one used last first."""
    files = []
    for path in folder.glob(pattern):
        with suppress(FileNotFoundError):  # another process deletes too
            status = path.lstat()
            if path.is_file():
                files.append((status.st_mtime_ns, status.st_size, path))
    return sorted(files, reverse=True)
