"""Reads the text files of a program's folder, as many as a program may have."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from tartlet.errors import BuildError

MAX_FILES = 2_000
MAX_BYTES = 32 * 10**6
"""Of all files of a program."""
SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "target"})


def read_file(path: Path) -> str:
    """The text of one file. Raises BuildError: it is too large, it cannot be read, or it is not UTF-8."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BuildError(f"{path} has more than {MAX_BYTES:,} bytes, the most that a program may have")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BuildError(f"{path} is not UTF-8 text: {error}") from None
    except OSError as error:
        raise BuildError(f"{path} cannot be read: {error.strerror}") from None


def read_folder(folder: Path, suffixes: Collection[str]) -> dict[str, str]:
    """The texts of the files with one of these suffixes, by path in the folder with `/`, sorted.

    What is hidden is left out, and so are folders that tools make (`SKIPPED_FOLDERS`). Links to folders are not
    followed.

    Raises:
        BuildError: There are too many, they are too large together, or one cannot be read.
    """
    texts: dict[str, str] = {}
    used_bytes = 0
    for path in sorted(_files(folder, suffixes)):
        text = read_file(path)
        used_bytes += len(text)
        if len(texts) >= MAX_FILES or used_bytes > MAX_BYTES:
            hint = "Keep what does not belong to the program outside of its folder."
            raise BuildError(f"{folder} has more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes of source", hint=hint)
        texts[path.relative_to(folder).as_posix()] = text
    return texts


def _files(folder: Path, suffixes: Collection[str]) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS]
        for name in names:
            path = Path(place, name)
            if path.suffix in suffixes and not name.startswith("."):
                yield path
