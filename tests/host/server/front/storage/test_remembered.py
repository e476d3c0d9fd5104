"""Tests of what the front keeps in memory of its database."""

from __future__ import annotations

import pytest

from tartlet.errors import NotFoundError, UnavailableError
from tartlet.server.front.storage import Storage, open_storage
from tartlet.server.front.storage.database import Database, PostgresTransactions
from tartlet.server.front.storage.remembered import Remembered
from tartlet.server.front.storage.sqlite_transactions import SqliteTransactions
from tartlet.server.requests import ProgramFacts

A, B = "a" * 64, "b" * 64
FACTS = ProgramFacts(is_inferlet=True, is_controller=False)


class Counted:
    """Counts what is read from the database in transactions."""

    def __init__(self) -> None:
        self.reads = 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counter, read = Counted(), Database.read

    async def counting(self, work):
        counter.reads += 1
        return await read(self, work)

    monkeypatch.setattr(Database, "read", counting)
    return counter


async def test_what_has_not_changed_is_read_once(storage: Storage, counted: Counted) -> None:
    """Keys, tenants and programs of the second request come from memory."""
    await storage.inferlets.put("acme", A, "source", 1, FACTS)
    token = (await storage.keys.create("acme")).token
    for _ in range(3):
        assert await storage.keys.authenticate(token)
        assert (await storage.tenants.get("acme")).name == "acme"
        assert (await storage.inferlets.find("acme", A)).digest == A

    assert counted.reads == 3


async def test_changes_of_other_processes_count_at_once(url: str, storage: Storage) -> None:
    """Such as of the command line: a key is revoked, a tenant disabled, a name moved, a program deleted."""
    for digest in (A, B):
        await storage.inferlets.put("acme", digest, "source", 1, FACTS)
    await storage.names.tag("acme", "it", A)
    first, second = [await storage.keys.create("acme") for _ in range(2)]
    assert await storage.keys.authenticate(first.token)
    assert await storage.keys.authenticate(second.token)
    assert (await storage.inferlets.find("acme", "it")).digest == A
    assert (await storage.tenants.get("acme")).weight == 1

    async with open_storage(url) as other:
        await other.keys.revoke(first.record.key_id)
        await other.tenants.change("acme", weight=2, is_enabled=False)
        await other.names.tag("acme", "it", B)

    assert await storage.keys.authenticate(first.token) is None
    caller = await storage.keys.authenticate(second.token)
    assert caller is not None
    assert caller.tenant is not None
    assert not caller.tenant.is_enabled
    assert (await storage.tenants.get("acme")).weight == 2
    assert (await storage.inferlets.find("acme", "it")).digest == B

    async with open_storage(url) as other:
        await other.names.untag("acme", "it")
        await other.inferlets.delete("acme", A)
    for ref in ("it", A):
        with pytest.raises(NotFoundError):
            await storage.inferlets.find("acme", ref)

    async with open_storage(url) as other:
        await other.tenants.delete("acme")
    assert await storage.keys.authenticate(second.token) is None
    with pytest.raises(NotFoundError):
        await storage.tenants.get("acme")


async def test_operators_keys_can_be_revoked_and_rotated(url: str, storage: Storage) -> None:
    """They are no tenant's; what is remembered of them ends all the same."""
    first, second = [await storage.keys.create(None) for _ in range(2)]
    for each in (first, second):
        assert await storage.keys.authenticate(each.token)
    async with open_storage(url) as other:
        await other.keys.revoke(first.record.key_id)
        await other.keys.rotate(second.record.key_id, grace_ms=0)
    for each in (first, second):
        assert await storage.keys.authenticate(each.token) is None


async def test_a_tenants_changes_cost_others_nothing(storage: Storage, counted: Counted) -> None:
    """By how long a request takes, nobody can tell that another tenant has changed something."""
    await storage.tenants.create("other")
    assert (await storage.tenants.get("acme")).name == "acme"
    await storage.tenants.change("other", weight=3)
    assert (await storage.tenants.get("acme")).name == "acme"

    assert counted.reads == 1


async def test_it_is_bounded(storage: Storage, url: str) -> None:
    """What was used longest ago is read again."""
    database = Database(url)
    remembered: Remembered[int, int] = Remembered(database, most=2)
    read: list[int] = []

    async def value(number: int) -> int:
        async def reading() -> tuple[str, int, int]:
            read.append(number)
            return "acme", 0, number

        return await remembered.get(number, reading)

    assert [await value(number) for number in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert read == [1, 2, 3, 2]
    await database.close()


async def test_what_cannot_be_checked_is_unavailable(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken from memory then."""

    async def fail(*_: object) -> None:
        raise OSError("gone")

    assert await storage.tenants.get("acme")
    for kind in (SqliteTransactions, PostgresTransactions):
        monkeypatch.setattr(kind, "number", fail)
    with pytest.raises(UnavailableError):
        await storage.tenants.get("acme")
