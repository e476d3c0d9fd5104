"""Compiled Python source on disk, so that a program is compiled once."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from tartlet.disk_cache import mark_used, shrink

MAX_BYTES = 32 * 10**6
"""Some thousand programs."""


class CodeCache:
    """Texts by digest in a folder; the ones used longest ago go when they take more than `max_bytes`.

    What is in it runs inside the sandbox only. Thread: any; several processes may share the folder.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def get(self, digest: str) -> str | None:
        """The text kept under a digest, if there is one."""
        path = self._path(digest)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError:
            return None
        mark_used(path)
        return text

    def put(self, digest: str, text: str) -> None:
        """Keep a text. A disk that is full is no reason to fail."""
        path = self._path(digest)
        temporary = path.with_suffix(f".{secrets.token_hex(8)}.tmp")
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, path)
            shrink(self._folder, "*.json", self._max_bytes)
        except OSError:
            temporary.unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}.json"
