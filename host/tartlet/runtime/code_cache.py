"""Compiled Python source on disk, so that a program is compiled once."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

MAX_ENTRIES = 500


class CodeCache:
    """Texts by digest in a folder; the ones used longest ago go when there are more than `max_entries`.

    What is in it runs inside the sandbox only. Thread: any; several processes may share the folder.
    """

    def __init__(self, folder: Path, max_entries: int = MAX_ENTRIES) -> None:
        self._folder = folder
        self._max_entries = max_entries

    def get(self, digest: str) -> str | None:
        """The text kept under a digest, if there is one."""
        path = self._path(digest)
        try:
            text = path.read_text(encoding="utf-8")
            path.touch()
        except OSError:
            return None
        return text

    def put(self, digest: str, text: str) -> None:
        """Keep a text. A disk that is full is no reason to fail."""
        path = self._path(digest)
        temporary = path.with_suffix(f".{secrets.token_hex(8)}.tmp")
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, path)
            self._prune()
        except OSError:
            temporary.unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}.json"

    def _prune(self) -> None:
        entries = list(self._folder.glob("*.json"))
        if len(entries) > self._max_entries:
            entries.sort(key=lambda path: path.stat().st_mtime_ns)
            for path in entries[: len(entries) - self._max_entries]:
                path.unlink(missing_ok=True)
