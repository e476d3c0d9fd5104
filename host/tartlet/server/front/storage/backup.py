"""Copies of the database and of uploaded programs for safekeeping, and the way back. SQLite only.

A copy is a folder: `tartlet.db`, and `blobs` with a folder for each tenant. It can be made while a server uses the
database, and a later copy into the same folder adds what is new. Nothing but a whole copy takes the place of another.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from tartlet import locks
from tartlet.errors import ConfigError
from tartlet.server.front.storage.database import parse_url
from tartlet.server.front.storage.opening import default_url

DATABASE, BLOBS = "tartlet.db", "blobs"
"""In a copy's folder."""
_PART = ".part"
_BESIDE = ("", "-wal", "-shm")
"""What SQLite calls the files of a database. A log that belongs to another one would damage it."""


class Copied(NamedTuple):
    """What a copy has."""

    programs: int
    missing: int
    """Programs whose files were not there: deleted while the copy was made, or lost before."""


def database_file(url: str | None, *, must_exist: bool = True) -> Path:
    """The file of a database, by default the server's. Raises ConfigError if it is no SQLite file, or is not there."""
    parsed = parse_url(url or default_url())
    if parsed.get_backend_name() != "sqlite":
        raise ConfigError("only an SQLite database is copied by Tartlet", hint="For PostgreSQL there is pg_dump.")
    path = Path(parsed.database or "")
    if must_exist and not path.is_file():
        raise ConfigError(f"there is no database {path}")
    return path


def back_up(database: Path, blobs: Path, target: Path) -> Copied:
    """Copy a database that may be in use, and the programs that it knows.

    Args:
        database: The file.
        blobs: The folder of uploaded programs.
        target: A folder, which is made if it is not there.

    Raises ConfigError if the database is damaged, or the copy cannot be written; an earlier copy is still there then.
    """
    with _as_config_error(f"the copy in {target} cannot be made"):
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = target / (DATABASE + _PART)
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_RDWR, 0o600))
        with closing(_open_to_read(database)) as source, closing(sqlite3.connect(part)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # all of it in one file
        copied = _copy_blobs(_checked(part), blobs, target / BLOBS)
        _sync(part)
        part.replace(target / DATABASE)
        _sync(target)
    return copied


def restore(source: Path, database: Path, blobs: Path) -> Copied:
    """Put a copy in the place of a database, which is kept beside it, with `.replaced` after its name.

    Args:
        source: The folder of the copy.
        database: The file, which need not be there.
        blobs: The folder of uploaded programs, to which those of the copy are added.

    Raises ConfigError if there is no copy, it is damaged, or a server uses the database; nothing has been changed then.
    """
    copy = source / DATABASE
    if not copy.is_file():
        raise ConfigError(f"there is no copy in {source}", hint="`tartlet backup FOLDER` makes one.")
    with _as_config_error(f"the copy in {source} cannot be restored"):
        known = _checked(copy)
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(database):
            copied = _copy_blobs(known, source / BLOBS, blobs)
            part = database.with_name(database.name + _PART)
            _copy(copy, part)
            for ending in _BESIDE:
                beside = database.with_name(database.name + ending)
                if beside.exists():
                    beside.replace(beside.with_name(f"{database.name}.replaced{ending}"))
            part.replace(database)
            _sync(database.parent)
    return copied


@contextmanager
def _alone(database: Path) -> Iterator[None]:
    """Hold a database as a front does, so that no server uses it."""
    holding = locks.hold_if_free(Path(f"{database}.front"))
    if holding is None:
        raise ConfigError("a server uses the database", hint="Stop it first.")
    try:
        yield
    finally:
        os.close(holding)


def _checked(path: Path) -> list[tuple[str, str]]:
    """The programs that a database knows, by tenant and digest. Raises ConfigError if it is damaged."""
    with closing(_open_to_read(path)) as connection:
        [found] = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise ConfigError(f"the database is damaged: {found}", hint="An earlier copy may be whole.")
        return connection.execute("SELECT tenant, digest FROM inferlets").fetchall()


def _open_to_read(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _copy_blobs(known: list[tuple[str, str]], source: Path, target: Path) -> Copied:
    num_missing = 0
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for tenant, digest in known:
        path = target / tenant / digest
        if path.exists():
            continue
        path.parent.mkdir(mode=0o700, exist_ok=True)
        part = path.with_name(digest + _PART)
        try:
            _copy(source / tenant / digest, part)
        except FileNotFoundError:
            num_missing += 1
        else:
            part.replace(path)
    return Copied(len(known) - num_missing, num_missing)


def _copy(source: Path, target: Path) -> None:
    """Copy a file for its owner only; when this returns, it is on disk."""
    with source.open("rb") as reading:
        descriptor = os.open(target, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as writing:
            shutil.copyfileobj(reading, writing)
            writing.flush()
            os.fsync(writing.fileno())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _as_config_error(what: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise ConfigError(
            f"{what}: {error}", hint="The database may be damaged; an earlier copy may be whole."
        ) from error
    except OSError as error:
        raise ConfigError(f"{what}: {error.strerror or error}") from error
