from __future__ import annotations

import pytest

from tartlet.errors import NotFoundError, QuotaError
from tartlet.server.front.storage import Storage
from tartlet.server.requests import Parameter, ProgramFacts

from .conftest import Clock, outcomes

FACTS = ProgramFacts(True, False, ("tartlet:inferlet/log@0.1.0",), (Parameter("n", False, "int", "3"),), "Says hello.")
A, B, C = "a" * 64, "b" * 64, "c" * 64


async def test_an_inferlet_is_read_as_it_was_written(storage: Storage, clock: Clock) -> None:
    """With its facts and names; uploading it again changes nothing."""
    assert await storage.inferlets.put("acme", A, "source", 123, FACTS)
    await storage.names.tag("acme", "hello@1", A)
    await storage.names.tag("acme", "hello", A)
    made_ms = int(clock.seconds * 1000)
    clock.seconds += 1
    assert not await storage.inferlets.put("acme", A, "component", 5, ProgramFacts(False, True))
    record = await storage.inferlets.get("acme", A)

    assert (record.tenant, record.digest, record.kind, record.num_bytes) == ("acme", A, "source", 123)
    assert (record.facts, record.names, record.created_ms) == (FACTS, ("hello", "hello@1"), made_ms)


async def test_an_inferlet_is_its_tenants_own(storage: Storage) -> None:
    """Others do not find it, and have to upload it themselves."""
    await storage.inferlets.put("acme", A, "source", 1, FACTS)
    for digest in (A, B, "a" * 12, "", "a\0", "A" * 64):
        with pytest.raises(NotFoundError):
            await storage.inferlets.get("default", digest)
    with pytest.raises(NotFoundError):
        await storage.inferlets.delete("default", A)
    with pytest.raises(NotFoundError, match="tenant"):
        await storage.inferlets.put("nobody", A, "source", 1, FACTS)
    assert await storage.inferlets.list("default") == []
    assert await storage.inferlets.put("default", A, "source", 1, FACTS)


async def test_each_tenant_deletes_its_own(storage: Storage) -> None:
    """Names go with it; what others have of the same digest stays."""
    for tenant in ("acme", "default"):
        await storage.inferlets.put(tenant, A, "source", 1, FACTS)
    await storage.names.tag("acme", "hello", A)

    await storage.inferlets.delete("acme", A)
    assert await storage.names.list("acme") == []
    assert await storage.inferlets.all() == {("default", A)}
    await storage.inferlets.delete("default", A)
    assert await storage.inferlets.all() == set()
    with pytest.raises(NotFoundError):
        await storage.inferlets.delete("default", A)


async def test_inferlets_are_listed_newest_first_in_pages(storage: Storage, clock: Clock) -> None:
    """Each with its names."""
    for digest in (A, C, B):
        await storage.inferlets.put("acme", digest, "source", 1, FACTS)
        clock.seconds += digest == A
    await storage.names.tag("acme", "hello", B)
    first = await storage.inferlets.list("acme", limit=1)
    others = await storage.inferlets.list("acme", after=first[0])

    assert [record.digest for record in first + others] == [C, B, A]
    assert [record.names for record in first + others] == [(), ("hello",), ()]


async def test_a_tenant_has_so_many_inferlets(storage: Storage) -> None:
    """Of 20 at once that each fit alone, as many get in as fit; those that are there already are not refused."""
    digests = [f"{number:064x}" for number in range(20)]
    heard = await outcomes(*(storage.inferlets.put("acme", each, "source", 10, FACTS, most=5) for each in digests))
    refused = [each for each in heard if isinstance(each, QuotaError)]

    assert len(refused) == 15
    assert (refused[0].limit, refused[0].used, refused[0].allowed) == ("inferlets", 6, 5)
    with pytest.raises(QuotaError) as caught:
        await storage.inferlets.put("acme", A, "source", 50, FACTS, most_bytes=99)
    assert (caught.value.limit, caught.value.used, caught.value.allowed) == ("inferlet_bytes", 100, 99)
    [*_, oldest] = await storage.inferlets.list("acme")
    assert not await storage.inferlets.put("acme", oldest.digest, "source", 10, FACTS, most=1, most_bytes=1)
