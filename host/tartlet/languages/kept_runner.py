"""The runner of a language, built once and kept under `paths.runners_folder()`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tartlet import paths
from tartlet.disk_cache import mark_used, shrink
from tartlet.locks import exclusive
from tartlet.progress import Progress


def runner_path(language: str, digest: str) -> Path:
    """Where the runner lies that is made of what has this digest."""
    return paths.runners_folder() / f"{language}-{digest}.wasm"


def kept_runner(path: Path, title: str, build: Callable[[Path], None], max_bytes: int, progress: Progress) -> Path:
    """The runner at `runner_path`, built now if it is not there yet. Of several processes one builds, the others wait.

    Args:
        path: Where it lies.
        title: Of its language.
        build: Makes it at a path, where it appears only when it is complete.
        max_bytes: What the language's runners may take together; those used longest ago go.
        progress: Hears of the wait for another process.

    Raises: What `build` raises.
    """
    if not path.is_file():
        with exclusive(
            path.with_suffix(".lock"), f"Waiting for another process that builds the {title} runner", progress
        ):
            if not path.is_file():
                build(path)
                shrink(path.parent, f"{path.name.partition('-')[0]}-*.wasm", max_bytes)
    mark_used(path)
    return path
