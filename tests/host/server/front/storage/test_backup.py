from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tartlet.errors import ConfigError, UnavailableError
from tartlet.events import RunUsage
from tartlet.server.front.storage import Storage, open_storage
from tartlet.server.front.storage.backup import Copied, back_up, database_file, restore
from tartlet.server.requests import ProgramFacts

FACTS = ProgramFacts(is_inferlet=True, is_controller=False)


async def fill(storage: Storage, blobs: Path, *digests: str) -> None:
    """Programs of a tenant, with their files, and a run of each."""
    for digest in digests:
        await storage.inferlets.put("default", digest, "source", 3, FACTS)
        path = blobs / "default" / digest
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"program {digest}")
        await storage.runs.start(f"run-{digest}", "default", digest, "hello")
        await storage.runs.end(f"run-{digest}", "succeeded", usage=RunUsage(generated_tokens=1))


def damage(path: Path) -> None:
    """Overwrite all but the first page, as a disk may that fails."""
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))


async def test_a_copy_of_a_server_that_goes_on_brings_all_of_it_back(tmp_path: Path) -> None:
    """Runs, ledger, keys and programs; what came after the copy is gone, and kept aside. A second copy adds to it."""
    database, blobs, copy = tmp_path / "db", tmp_path / "blobs", tmp_path / "copies" / "first"
    async with open_storage(str(database)) as storage:
        await storage.become_front()
        await fill(storage, blobs, "a" * 64)
        key = await storage.keys.create("default")
        assert back_up(database, blobs, copy) == Copied(1, 0)
        await fill(storage, blobs, "b" * 64)
        assert back_up(database, blobs, copy) == Copied(2, 0)
        await fill(storage, blobs, "c" * 64)
        with pytest.raises(ConfigError, match="a server uses"):
            restore(copy, database, blobs)
    shutil.rmtree(blobs)
    assert restore(copy, database, blobs) == Copied(2, 0)

    async with open_storage(str(database)) as storage:
        assert len(await storage.runs.list("default")) == 2
        [day] = await storage.usage.read()
        assert (day.runs, day.generated_tokens) == (2, 2)
        assert await storage.keys.authenticate(key.token) is not None
    assert (blobs / "default" / ("b" * 64)).read_text() == "program " + "b" * 64
    assert not (blobs / "default" / ("c" * 64)).exists()
    async with open_storage(str(tmp_path / "db.replaced")) as storage:
        assert len(await storage.runs.list("default")) == 3
    assert {path.stat().st_mode & 0o77 for path in copy.rglob("*")} == {0}


async def test_a_damaged_database_says_so(tmp_path: Path) -> None:
    """What needs it is refused; a copy of it does not take the place of an earlier one, which can be restored."""
    database, blobs, copy = tmp_path / "db", tmp_path / "blobs", tmp_path / "copy"
    async with open_storage(str(database)) as storage:
        await fill(storage, blobs, *(f"{number:064}" for number in range(50)))
    back_up(database, blobs, copy)
    damage(database)
    with pytest.raises(UnavailableError, match="is damaged") as caught:
        async with open_storage(str(database)) as storage:
            await storage.runs.list("default")
    assert caught.value.code == "storage_unavailable"
    with pytest.raises(ConfigError, match="damaged"):
        back_up(database, blobs, copy)

    assert restore(copy, database, blobs) == Copied(50, 0)
    async with open_storage(str(database)) as storage:
        assert len(await storage.runs.list("default")) == 50


async def test_a_damaged_copy_changes_nothing(tmp_path: Path) -> None:
    """Nor does a folder that holds none."""
    database, blobs, copy = tmp_path / "db", tmp_path / "blobs", tmp_path / "copy"
    async with open_storage(str(database)) as storage:
        await fill(storage, blobs, *(f"{number:064}" for number in range(50)))
    back_up(database, blobs, copy)
    before = database.read_bytes()
    damage(copy / "tartlet.db")
    with pytest.raises(ConfigError, match="damaged"):
        restore(copy, database, blobs)
    with pytest.raises(ConfigError, match="there is no copy"):
        restore(tmp_path / "nothing", database, blobs)

    assert database.read_bytes() == before


async def test_a_program_without_its_file_is_told_of(tmp_path: Path) -> None:
    """The rest is copied."""
    database, blobs = tmp_path / "db", tmp_path / "blobs"
    async with open_storage(str(database)) as storage:
        await fill(storage, blobs, "a" * 64, "b" * 64)
    (blobs / "default" / ("a" * 64)).unlink()

    assert back_up(database, blobs, tmp_path / "copy") == Copied(1, 1)


def test_what_can_be_copied(tmp_path: Path) -> None:
    """A file of SQLite that is there."""
    (tmp_path / "db").touch()

    assert database_file(str(tmp_path / "db")) == tmp_path / "db"
    assert database_file(str(tmp_path / "new"), must_exist=False) == tmp_path / "new"
    with pytest.raises(ConfigError, match="there is no database"):
        database_file(str(tmp_path / "new"))
    with pytest.raises(ConfigError, match="only an SQLite"):
        database_file("postgresql://host/name")


def test_a_copy_that_cannot_be_written(tmp_path: Path) -> None:
    """The reason is told."""
    sqlite3.connect(tmp_path / "db").close()
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ConfigError, match="cannot be made"):
        back_up(tmp_path / "db", tmp_path, tmp_path / "file")
