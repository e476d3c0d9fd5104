"""The programs that carry out requests, stored where workers find them."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tartlet import paths
from tartlet.server.requests import ProgramRef, SourceFile

FOLDER = Path(__file__).parent / "inferlets"

Endpoint: TypeAlias = Literal["chat", "completions"]

_MODULES: dict[Endpoint, tuple[str, ...]] = {
    "chat": ("chat", "answering", "forced_calls", "tokens", "tool_format"),
    "completions": ("completions", "answering", "tokens"),
}
"""No more than it takes: each start of a run carries them into the sandbox."""


def endpoint_program(endpoint: Endpoint) -> ProgramRef:
    """The program of an endpoint. It lies in TARTLET_HOME, by its digest; it is written if it is not there."""
    data, digest = _content(endpoint)
    folder = paths.home() / "endpoints"
    path = folder / digest
    if not path.is_file():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    return ProgramRef(digest, str(path), "source", f"openai/{endpoint}")


def endpoint_source(endpoint: Endpoint) -> SourceFile:
    """The source of the program of an endpoint."""
    files = {f"{name}.py": (FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in _MODULES[endpoint]}
    return SourceFile(endpoint, files)


@functools.cache
def _content(endpoint: Endpoint) -> tuple[bytes, str]:
    """The program as it is stored, and its digest."""
    data = msgspec.json.encode(endpoint_source(endpoint))
    return data, hashlib.sha256(data).hexdigest()
