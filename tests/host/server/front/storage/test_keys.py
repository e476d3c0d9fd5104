from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tartlet.errors import ConfigError, ConflictError, NotFoundError, QuotaError
from tartlet.server.front.storage import Storage, keys, open_storage

from .conftest import Clock, OpenStorage, outcomes


async def test_a_key_says_whose_it_is(storage: Storage) -> None:
    """A tenant's gives the tenant with its settings; an operator's gives none, and is good for everything."""
    await storage.tenants.change("acme", weight=3)
    key = await storage.keys.create("acme", label="laptop")
    operators = await storage.keys.create(None)
    caller = await storage.keys.authenticate(key.token)
    operator = await storage.keys.authenticate(operators.token)

    assert caller is not None
    assert caller.tenant is not None
    assert (caller.tenant.name, caller.tenant.weight) == ("acme", 3.0)
    assert (caller.key.key_id, caller.key.label, caller.key.scopes) == (key.token[:12], "laptop", keys.TENANT_SCOPES)
    assert not caller.key.allows("admin")
    assert operator is not None
    assert operator.tenant is None
    assert all(operator.key.allows(scope) for scope in keys.SCOPES)


async def test_a_key_is_good_for_its_scopes(storage: Storage) -> None:
    """And no others; a tenant's is never good for what operators do."""
    key = await storage.keys.create("acme", scopes=["runs:read", "openai"])

    assert [scope for scope in keys.SCOPES if key.record.allows(scope)] == ["runs:read", "openai"]
    for tenant, scopes in (("acme", ["admin"]), ("acme", []), (None, ["runs"])):
        with pytest.raises(ConfigError, match="scopes"):
            await storage.keys.create(tenant, scopes=scopes)
    with pytest.raises(ConfigError, match="label"):
        await storage.keys.create("acme", label="two\nlines")
    with pytest.raises(NotFoundError):
        await storage.keys.create("nobody")


async def test_only_the_hash_is_kept(tmp_path: Path) -> None:
    """Whoever has the database has no key. Two keys differ."""
    async with open_storage(str(tmp_path / "db")) as storage:
        made = [await storage.keys.create("default") for _ in range(2)]
    text = "\n".join(sqlite3.connect(tmp_path / "db").iterdump())

    assert made[0].token != made[1].token
    for key in made:
        assert key.record.key_id in text
        assert key.token not in text
        assert key.token[12:] not in text


@pytest.mark.parametrize("token", ["", "tlk_", "tlk_" + "0" * 48, "tlk_" + "0" * 47 + "\n", "x" * 10_000, "tlk_ä\0"])
async def test_what_is_no_key_is_nobodys(storage: Storage, token: str) -> None:
    """Whatever it is."""
    assert await storage.keys.authenticate(token) is None


async def test_a_key_expires(storage: Storage, clock: Clock) -> None:
    """When its time is over."""
    key = await storage.keys.create("acme", lifetime_ms=1000)
    clock.seconds += 0.9
    assert await storage.keys.authenticate(key.token) is not None
    clock.seconds += 0.1
    assert await storage.keys.authenticate(key.token) is None


async def test_a_revoked_key_is_refused_at_once(storage: Storage) -> None:
    """Revoking it again does nothing. A tenant cannot revoke another's, which it cannot find."""
    key = await storage.keys.create("acme")
    with pytest.raises(NotFoundError):
        await storage.keys.revoke(key.record.key_id, tenant="default")
    with pytest.raises(NotFoundError):
        await storage.keys.revoke("tlk_\0")
    revoked = await storage.keys.revoke(key.record.key_id, tenant="acme")

    assert revoked.revoked_ms is not None
    assert await storage.keys.revoke(key.record.key_id) == revoked
    assert await storage.keys.authenticate(key.token) is None


async def test_a_rotated_key_is_valid_for_a_while(storage: Storage, clock: Clock) -> None:
    """The new one is for the same and lives as long; the old one ends with the grace time."""
    old = await storage.keys.create("acme", scopes=["openai"], label="ci", lifetime_ms=100_000)
    clock.seconds += 30
    new = await storage.keys.rotate(old.record.key_id, grace_ms=10_000, tenant="acme")

    assert (new.record.tenant, new.record.scopes, new.record.label) == ("acme", ("openai",), "ci")
    assert new.record.expires_ms == new.record.created_ms + 100_000
    assert await storage.keys.authenticate(old.token) is not None
    clock.seconds += 10
    assert await storage.keys.authenticate(old.token) is None
    assert await storage.keys.authenticate(new.token) is not None
    [listed] = [key for key in await storage.keys.list("acme") if key.key_id == old.record.key_id]
    assert listed.replaced_by == new.record.key_id


async def test_a_grace_time_makes_no_key_live_longer(storage: Storage) -> None:
    """Than it would have."""
    old = await storage.keys.create("acme", lifetime_ms=1000)
    await storage.keys.rotate(old.record.key_id, grace_ms=10_000)
    [listed] = [key for key in await storage.keys.list("acme") if key.key_id == old.record.key_id]

    assert listed.expires_ms == old.record.expires_ms


async def test_a_key_is_rotated_once(storage: Storage, clock: Clock, open_again: OpenStorage) -> None:
    """Of many at once, over two connections, one does it; nor is a key rotated that is not valid any more."""
    key = await storage.keys.create(None)
    async with open_again() as other:
        tries = [each.keys.rotate(key.record.key_id, grace_ms=0) for each in (storage, other) * 10]
        heard = await outcomes(*tries)

    assert sum(isinstance(each, keys.NewKey) for each in heard) == 1
    assert sum(isinstance(each, ConflictError) for each in heard) == 19
    revoked, expired = await storage.keys.create("acme"), await storage.keys.create("acme", lifetime_ms=1)
    await storage.keys.revoke(revoked.record.key_id)
    clock.seconds += 1
    for each in (revoked, expired):
        with pytest.raises(ConflictError, match="not valid"):
            await storage.keys.rotate(each.record.key_id, grace_ms=0)


async def test_last_use_is_written_once_a_minute(storage: Storage, clock: Clock) -> None:
    """However often a key is used."""

    async def last_used_ms() -> int | None:
        return (await storage.keys.list("acme"))[0].last_used_ms

    key = await storage.keys.create("acme")
    first_ms = int(clock.seconds * 1000)
    assert await last_used_ms() is None
    for _ in range(3):
        await storage.keys.authenticate(key.token)
        clock.seconds += 20
        assert await last_used_ms() == first_ms
    await storage.keys.authenticate(key.token)
    assert await last_used_ms() == first_ms + 60_000


async def test_keys_are_listed_by_whose_they_are(storage: Storage, clock: Clock) -> None:
    """A tenant's, the operators', or all, the newest first."""
    made = []
    for tenant in ("acme", "default", None, "acme"):
        made.append((await storage.keys.create(tenant)).record.key_id)
        clock.seconds += 1

    assert [key.key_id for key in await storage.keys.list("acme")] == [made[3], made[0]]
    assert [key.key_id for key in await storage.keys.list(of_operators=True)] == [made[2]]
    assert [key.key_id for key in await storage.keys.list()] == made[::-1]


async def test_the_first_start_makes_one_key(storage: Storage, open_again: OpenStorage) -> None:
    """Though several processes start at once; and it is not made again when it has been revoked."""
    async with open_again() as other:
        made = await outcomes(*(each.keys.create_first() for each in (storage, other) * 5))
    keys_made = [key for key in made if key is not None]

    assert len(keys_made) == 1
    assert isinstance(keys_made[0], keys.NewKey)
    await storage.keys.revoke(keys_made[0].record.key_id)
    assert await storage.keys.create_first() is None


async def test_a_tenant_has_so_many_keys(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused until one is revoked; others' do not count."""
    monkeypatch.setattr(keys, "MOST_KEYS", 2)
    made = [await storage.keys.create("acme") for _ in range(2)]
    with pytest.raises(QuotaError) as caught:
        await storage.keys.create("acme")
    assert (caught.value.used, caught.value.allowed) == (3, 2)
    await storage.keys.create("default")
    await storage.keys.revoke(made[0].record.key_id)
    await storage.keys.create("acme")
