from __future__ import annotations

import pytest

from tartlet.errors import ConfigError, ConflictError
from tartlet.events import RunUsage
from tartlet.server.front.storage import Claim, Storage

from .conftest import Clock

CLAIM = Claim("key", "request")


async def start(storage: Storage, run_id: str, claim: Claim = CLAIM, tenant: str = "acme") -> str:
    return await storage.runs.start(run_id, tenant, "d" * 64, "hello", claim=claim)


async def test_a_key_finds_its_run(storage: Storage) -> None:
    """For its tenant and its request."""
    assert await storage.idempotency.find("acme", CLAIM) is None
    await start(storage, "run-1")

    assert await storage.idempotency.find("acme", CLAIM) == "run-1"
    assert await storage.idempotency.find("default", CLAIM) is None
    assert await start(storage, "run-2", tenant="default") == "run-2"
    with pytest.raises(ConflictError, match="another request"):
        await storage.idempotency.find("acme", Claim("key", "another"))


async def test_a_key_is_remembered_for_a_day(storage: Storage, clock: Clock) -> None:
    """Then it can be used again, for anything; whether it has been swept or not."""
    await start(storage, "run-1")
    clock.seconds += 86_399
    assert await start(storage, "run-2") == "run-1"
    clock.seconds += 1
    assert await storage.idempotency.find("acme", CLAIM) is None
    assert await start(storage, "run-3", Claim("key", "another")) == "run-3"
    clock.seconds += 86_400
    assert await storage.idempotency.sweep() == 1
    assert await start(storage, "run-4") == "run-4"


async def test_a_key_whose_run_came_to_nothing_is_free_with_its_end(storage: Storage) -> None:
    """That run's, and no other's; once it has ended, no more."""
    await start(storage, "run-1")
    await start(storage, "run-2", Claim("other", "hash"))
    await storage.runs.end("run-2", "failed", usage=RunUsage(), frees_key=True)
    assert await start(storage, "run-3") == "run-1"
    await storage.runs.end("run-1", "failed", usage=RunUsage(), frees_key=True)
    assert await start(storage, "run-4") == "run-4"
    await storage.runs.end("run-1", "failed", usage=RunUsage(), frees_key=True)
    assert await start(storage, "run-5") == "run-4"


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "a\0", "ä"])
async def test_what_cannot_be_a_key(storage: Storage, key: str) -> None:
    """Is refused, and starts nothing."""
    with pytest.raises(ConfigError):
        await storage.idempotency.find("acme", Claim(key, "request"))
    with pytest.raises(ConfigError):
        await start(storage, "run-1", Claim(key, "request"))
    assert await storage.runs.list("acme") == []
