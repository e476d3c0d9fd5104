"""What compile children make of programs: a folder for each tenant, and a fair share of the disk.

Tenants share nothing: who uploads what another has pays for compiling it, and cannot tell by the time it takes. When
all of it takes too much, the tenant with the most loses what it used longest ago, and can have it compiled again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tartlet.disk_cache import mark_used
from tartlet.server.requests import ProgramKind, ProgramRef


@dataclass(frozen=True, slots=True, order=True)
class _File:
    used_ns: int
    size: int
    path: Path


class CodeStore:
    """Files in a folder of the front's own, of which children write those of one tenant each.

    A file's name begins with the program's digest; what follows is the same for all components, and all source of a
    language, and known from the first that a child makes: it stands for the versions of all that the code depends on.

    Args:
        folder: Made when it is needed.
        max_bytes: For all tenants together.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._endings: dict[ProgramKind, set[str]] = {}

    def folder(self, tenant: str) -> Path:
        """Where a tenant's files lie, made if it is not there."""
        folder = self._folder / tenant
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def find(self, program: ProgramRef) -> Path | None:
        """What was made of a program, which is used now; None: nothing, or none has been made of its kind so far."""
        for ending in self._endings.get(program.kind, ()):
            path = self._folder / program.tenant / f"{program.digest}{ending}"
            if path.is_file():
                mark_used(path)
                return path
        return None

    def note(self, program: ProgramRef, path: Path) -> None:
        """Take in what a child has made."""
        self._endings.setdefault(program.kind, set()).add(path.name.removeprefix(program.digest))

    def drop(self, tenant: str, digest: str) -> None:
        """Remove what was made of a program that the tenant has no more."""
        for path in (self._folder / tenant).glob(f"{digest}*"):
            with suppress(OSError):
                path.unlink()

    def shrink(self) -> None:
        """Remove what was used longest ago, of whoever has the most, until all of it takes no more than it may.

        What was used last stays. Blocks. Cost: one `stat` for each file.
        """
        files = {folder: sorted(_files(folder)) for folder in self._folders()}
        sizes = {folder: sum(file.size for file in found) for folder, found in files.items()}
        last = max((found[-1] for found in files.values() if found), default=None)
        while sum(sizes.values()) > self._max_bytes:
            most = max(files, key=lambda folder: sizes[folder])
            oldest = files[most].pop(0)
            sizes[most] -= oldest.size
            if oldest != last:
                with suppress(OSError):
                    oldest.path.unlink()

    def sweep(self, known: Collection[tuple[str, str]]) -> None:
        """Remove what is of no program that a tenant has, by tenants and digests. Blocks."""
        for folder in self._folders():
            for file in _files(folder):
                if (folder.name, file.path.name.partition("-")[0]) not in known:
                    with suppress(OSError):
                        file.path.unlink()
            with suppress(OSError):  # there is something in it
                folder.rmdir()

    def _folders(self) -> list[Path]:
        return [path for path in self._folder.iterdir() if path.is_dir()] if self._folder.is_dir() else []


def _files(folder: Path) -> Iterator[_File]:
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            status = path.lstat()
            yield _File(status.st_mtime_ns, status.st_size, path)
