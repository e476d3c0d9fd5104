from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from tartlet.errors import ConfigError
from tartlet.events import RunUsage
from tartlet.server.front.storage import Storage, open_storage
from tartlet.server.front.storage.database import Database
from tartlet.server.front.storage.schema import MIGRATIONS

from .conftest import outcomes


def add_column(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE tenants ADD COLUMN motto TEXT"))


def add_mottoes(connection: Connection) -> None:
    connection.execute(text("UPDATE tenants SET motto = 'hello from ' || name"))


def fail(connection: Connection) -> None:
    raise ValueError("this migration is wrong")


async def read(url: str, query: str) -> list[object]:
    database = Database(url)
    rows = await database.read(lambda connection: list(connection.scalars(text(query)).all()))
    await database.close()
    return rows


async def create_tenant(url: str) -> None:
    async with open_storage(url) as storage:
        await storage.tenants.create("acme")


async def test_an_older_database_is_brought_to_the_newest_version(url: str) -> None:
    """By each step that it lacks, once, in their order; what is in it stays."""
    await create_tenant(url)
    steps = [*MIGRATIONS, add_column]
    async with open_storage(url, migrations=steps):
        pass
    async with open_storage(url, migrations=[*steps, add_mottoes]) as storage:
        assert [tenant.name for tenant in await storage.tenants.list()] == ["acme", "default"]
    async with open_storage(url, migrations=[*steps, add_mottoes]):
        pass

    assert await read(url, "SELECT motto FROM tenants ORDER BY name") == ["hello from acme", "hello from default"]
    assert await read(url, "SELECT version FROM schema_version") == [len(MIGRATIONS) + 3]


async def test_a_ledger_of_version_2_has_held_no_pages(url: str) -> None:
    """It stays as it is, with a column more, to which later runs are added."""
    async with open_storage(url) as storage:
        await storage.runs.start("run-1", "default", "d" * 64, "hello")
        await storage.runs.end("run-1", "succeeded", usage=RunUsage(generated_tokens=7))
    database = Database(url)

    def make_older(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE usage DROP COLUMN page_seconds"))
        connection.execute(text("UPDATE schema_version SET version = 2"))

    await database.write(make_older)
    await database.close()

    async with open_storage(url) as storage:
        await storage.runs.start("run-2", "default", "d" * 64, "hello")
        await storage.runs.end("run-2", "succeeded", usage=RunUsage(generated_tokens=7, page_seconds=1.5))
        (record,) = await storage.usage.read("default")
    assert (record.runs, record.generated_tokens, record.page_seconds) == (2, 14, 1.5)


async def test_a_migration_that_fails_leaves_nothing_behind(url: str) -> None:
    """The database is as it was, and can still be used."""
    await create_tenant(url)
    with pytest.raises(ValueError, match="is wrong"):
        async with open_storage(url, migrations=[*MIGRATIONS, add_column, fail]):
            pass
    async with open_storage(url, migrations=[*MIGRATIONS, add_column]):
        pass

    assert await read(url, "SELECT motto FROM tenants WHERE name = 'acme'") == [None]


async def test_a_database_of_a_newer_version_is_left_alone(url: str) -> None:
    """It says what to do."""
    async with open_storage(url, migrations=[*MIGRATIONS, add_column]):
        pass
    newest = len(MIGRATIONS) + 1
    expected = f"version {newest + 1} of the tables, this Tartlet knows {newest}"
    with pytest.raises(ConfigError, match=expected) as caught:
        async with open_storage(url):
            pass
    assert "newer" in caught.value.hint


async def test_several_may_open_a_new_database_at_once(url: str) -> None:
    """One makes the tables, the others find them; so with migrations."""

    async def open_once(steps: list[object]) -> list[str]:
        async with open_storage(url, migrations=steps) as storage:  # type: ignore[arg-type]
            return [tenant.name for tenant in await storage.tenants.list()]

    assert await outcomes(*(open_once([*MIGRATIONS]) for _ in range(8))) == [["default"]] * 8
    assert await outcomes(*(open_once([*MIGRATIONS, add_column]) for _ in range(8))) == [["default"]] * 8


async def test_opening_again_finds_everything(url: str, tmp_path: Path) -> None:
    """Nothing is made anew."""
    await create_tenant(url)
    storage: Storage
    async with open_storage(url) as storage:
        first = await storage.tenants.get("default")
    async with open_storage(url) as storage:
        assert await storage.tenants.get("default") == first
