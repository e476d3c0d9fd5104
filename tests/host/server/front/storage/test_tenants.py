from __future__ import annotations

import pytest

from tartlet.errors import ConfigError, ConflictError, NotFoundError
from tartlet.server.front.storage import Storage
from tartlet.server.requests import ProgramFacts


async def test_the_built_in_tenant_is_there(storage: Storage) -> None:
    """From the first start, and it stays."""
    record = await storage.tenants.get("default")

    assert (record.weight, record.limits, record.is_enabled) == (1.0, {}, True)
    with pytest.raises(ConflictError, match="built in"):
        await storage.tenants.delete("default")


async def test_a_tenant_is_created_read_and_changed(storage: Storage) -> None:
    """Limits that are given go over the others; those that are reset are the server's again."""
    made = await storage.tenants.create("globex", weight=2, limits={"max_tokens": 5, "inferlets": None})
    changed = await storage.tenants.change("globex", limits={"max_tokens": 7, "queue_length": 1}, is_enabled=False)
    reset = await storage.tenants.change("globex", weight=0.5, reset=("max_tokens",))

    assert made.limits == {"max_tokens": 5, "inferlets": None}
    assert changed.limits == {"max_tokens": 7, "inferlets": None, "queue_length": 1}
    assert (changed.weight, changed.is_enabled, changed.created_ms) == (2.0, False, made.created_ms)
    assert reset.limits == {"inferlets": None, "queue_length": 1}
    assert (reset.weight, reset.is_enabled) == (0.5, False)
    assert await storage.tenants.get("globex") == reset
    assert [tenant.name for tenant in await storage.tenants.list()] == ["acme", "default", "globex"]


@pytest.mark.parametrize("name", ["", "A", "a/b", "a@b", "-a", "a" * 64, "a b", "ä", "a\0", "a\n"])
async def test_what_cannot_be_a_tenant(storage: Storage, name: str) -> None:
    """Is refused when it is made, and not found otherwise."""
    with pytest.raises(ConfigError):
        await storage.tenants.create(name)
    with pytest.raises(NotFoundError):
        await storage.tenants.get(name)
    with pytest.raises(NotFoundError):
        await storage.tenants.change(name, weight=2)


async def test_a_weight_has_a_range(storage: Storage) -> None:
    """As the engine's."""
    with pytest.raises(ConfigError, match="weight"):
        await storage.tenants.create("globex", weight=0)
    with pytest.raises(ConfigError, match="weight"):
        await storage.tenants.change("acme", weight=float("nan"))


async def test_a_deleted_tenant_is_gone_and_its_name_with_it(storage: Storage) -> None:
    """Nobody gets what was saved under the name; its keys and programs are deleted."""
    key = await storage.keys.create("acme")
    await storage.inferlets.put("acme", "a" * 64, "source", 1, ProgramFacts(True, False))
    await storage.names.tag("acme", "hello", "a" * 64)
    await storage.runs.start("run-1", "acme", "a" * 64, "hello")
    await storage.tenants.delete("acme")

    assert [tenant.name for tenant in await storage.tenants.list()] == ["default"]
    assert await storage.keys.authenticate(key.token) is None
    assert await storage.inferlets.all() == set()
    for coroutine in (storage.tenants.get("acme"), storage.tenants.delete("acme"), storage.keys.create("acme")):
        with pytest.raises(NotFoundError):
            await coroutine
    with pytest.raises(ConflictError, match="has been"):
        await storage.tenants.create("acme")
