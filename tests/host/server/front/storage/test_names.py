from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tartlet.errors import ConfigError, ConflictError, NotFoundError, QuotaError
from tartlet.server.front.storage import Storage, open_storage
from tartlet.server.requests import ProgramFacts
from tartlet.versions import version_key

from .conftest import OpenStorage, outcomes

FACTS = ProgramFacts(True, False)
A, B = "a" * 64, "a" * 20 + "b" * 44


@pytest.fixture(autouse=True)
async def uploaded(storage: Storage) -> None:
    """Two inferlets of `acme` whose digests begin alike, and one of them is also `default`'s."""
    for tenant, digest in (("acme", A), ("acme", B), ("default", A)):
        await storage.inferlets.put(tenant, digest, "source", 1, FACTS)


async def test_a_name_stands_for_what_it_was_tagged_with_last(storage: Storage) -> None:
    """In its tenant alone; and for nothing once it is untagged."""
    assert await storage.names.tag("acme", "hello", A) is None
    assert await storage.names.tag("acme", "hello", B) == A
    assert await storage.names.resolve("acme", "hello") == B
    with pytest.raises(NotFoundError):
        await storage.names.resolve("default", "hello")
    with pytest.raises(NotFoundError):
        await storage.names.untag("default", "hello")
    assert await storage.names.untag("acme", "hello") == B
    for name in ("hello", "a\0"):
        with pytest.raises(NotFoundError):
            await storage.names.untag("acme", name)


async def test_a_name_without_a_version_is_the_newest(storage: Storage) -> None:
    """Unless there is one that has no version."""
    for name, digest in (("hello@1.9", A), ("hello@1.10", B), ("hello@1.2", A), ("hello-you@9", A)):
        await storage.names.tag("acme", name, digest)
    assert await storage.names.resolve("acme", "hello") == B
    assert await storage.names.resolve("acme", "hello@1.9") == A
    await storage.names.tag("acme", "hello", A)
    assert await storage.names.resolve("acme", "hello") == A
    listed = await storage.names.list("acme", base="hello")
    assert [record.name for record in listed] == ["hello", "hello@1.2", "hello@1.9", "hello@1.10"]
    for missing in ("hello@1", "hell", "hello@", "hello@1@2", "%", "", "x" * 300, "a\0"):
        with pytest.raises(NotFoundError):
            await storage.names.resolve("acme", missing)


async def test_a_digest_is_known_by_its_beginning(storage: Storage) -> None:
    """If it has 12 digits, and no other begins so."""
    assert await storage.names.resolve("acme", A) == A
    assert await storage.names.resolve("acme", A[:21].upper()) == A
    assert await storage.names.resolve("acme", B[:21]) == B
    with pytest.raises(ConflictError) as caught:
        await storage.names.resolve("acme", A[:20])
    assert caught.value.code == "ambiguous"
    assert await storage.names.resolve("default", A[:12]) == A
    for missing in (A[:11], "b" * 12, A + "a"):
        with pytest.raises(NotFoundError):
            await storage.names.resolve("acme", missing)


@pytest.mark.parametrize(
    "name", ["", "@1", "Hello", "a b", "a/b", "hello@", "hello@1@2", "x" * 65, "h@" + "1" * 65, "h@-", "a" * 12, "h\n"]
)
async def test_what_cannot_be_a_name(storage: Storage, name: str) -> None:
    """Is refused; among it what could be a digest."""
    with pytest.raises(ConfigError, match="cannot be called"):
        await storage.names.tag("acme", name, A)


async def test_only_what_is_there_is_tagged(storage: Storage) -> None:
    """By all of its digest."""
    for tenant, digest in (("default", B), ("acme", A[:12]), ("nobody", A), ("acme", A[:-1] + "\0")):
        with pytest.raises(NotFoundError):
            await storage.names.tag(tenant, "hello", digest)


async def test_a_tenant_has_so_many_names(storage: Storage) -> None:
    """Moving one is not one more."""
    await storage.names.tag("acme", "hello", A, most=1)
    await storage.names.tag("acme", "hello", B, most=1)
    with pytest.raises(QuotaError) as caught:
        await storage.names.tag("acme", "hello@2", A, most=1)
    assert (caught.value.limit, caught.value.used, caught.value.allowed) == ("names", 2, 1)


async def test_of_50_taggings_at_once_one_is_first(storage: Storage, open_again: OpenStorage) -> None:
    """Those that must not move the name are refused, but for those who want the same."""
    async with open_again() as other:
        tries = [
            each.names.tag("acme", "hello", digest, replace=False)
            for each in (storage, other)
            for digest in (A, B)
            for _ in range(13)
        ]
        heard = await outcomes(*tries)
    winner = await storage.names.resolve("acme", "hello")

    assert heard.count(None) == 1
    assert heard.count(winner) == 25
    assert sum(isinstance(each, ConflictError) for each in heard) == 26


async def test_of_50_moves_at_once_each_follows_another(storage: Storage) -> None:
    """What each says that it has replaced is what one other has put there."""
    digests = [f"{number:064x}" for number in range(1, 51)]
    for digest in digests:
        await storage.inferlets.put("acme", digest, "source", 1, FACTS)
    replaced = await outcomes(*(storage.names.tag("acme", "hello", digest) for digest in digests))
    last = await storage.names.resolve("acme", "hello")

    assert sorted([*(str(each) for each in replaced if each is not None), last]) == digests


BASES = st.sampled_from(["p", "q", "p-q"])
VERSIONS = st.sampled_from(["", "@1", "@1.2", "@1.10", "@2-rc", "@beta"])
DIGESTS = st.sampled_from([A, B])


class NameMachine(RuleBasedStateMachine):
    """Names against a dictionary."""

    storage: Storage
    run: Any
    tenant = 0

    def __init__(self) -> None:
        super().__init__()
        NameMachine.tenant += 1
        self.name = f"machine-{NameMachine.tenant}"
        self.model: dict[str, str] = {}
        self.has = {A, B}
        self.run(self.storage.tenants.create(self.name))
        for digest in self.has:
            self.run(self.storage.inferlets.put(self.name, digest, "source", 1, FACTS))

    @rule(base=BASES, version=VERSIONS, digest=DIGESTS, replace=st.booleans())
    def tag(self, base: str, version: str, digest: str, replace: bool) -> None:
        name, coroutine = base + version, self.storage.names.tag(self.name, base + version, digest, replace=replace)
        old = self.model.get(name)
        if digest not in self.has:
            self.refused(NotFoundError, coroutine)
        elif old not in (None, digest) and not replace:
            self.refused(ConflictError, coroutine)
        else:
            assert self.run(coroutine) == old
            self.model[name] = digest

    @rule(base=BASES, version=VERSIONS)
    def untag(self, base: str, version: str) -> None:
        coroutine = self.storage.names.untag(self.name, base + version)
        if base + version in self.model:
            assert self.run(coroutine) == self.model.pop(base + version)
        else:
            self.refused(NotFoundError, coroutine)

    @rule(digest=DIGESTS)
    def delete(self, digest: str) -> None:
        coroutine = self.storage.inferlets.delete(self.name, digest)
        if digest in self.has:
            self.run(coroutine)
            self.has.remove(digest)
            self.model = {name: meant for name, meant in self.model.items() if meant != digest}
        else:
            self.refused(NotFoundError, coroutine)

    @rule(digest=DIGESTS)
    def put(self, digest: str) -> None:
        assert self.run(self.storage.inferlets.put(self.name, digest, "source", 1, FACTS)) == (digest not in self.has)
        self.has.add(digest)

    @rule(base=BASES, version=VERSIONS)
    def resolve(self, base: str, version: str) -> None:
        coroutine = self.storage.names.resolve(self.name, base + version)
        known = [base + version] if base + version in self.model else []
        if not known and not version:
            known = [name for name in self.model if name.partition("@")[0] == base]
        if known:
            assert self.run(coroutine) == self.model[max(known, key=version_key)]
        else:
            self.refused(NotFoundError, coroutine)

    @invariant()
    def lists_agree(self) -> None:
        listed = {record.name: record.digest for record in self.run(self.storage.names.list(self.name))}
        assert listed == self.model
        for record in self.run(self.storage.inferlets.list(self.name)):
            assert list(record.names) == sorted(name for name in self.model if self.model[name] == record.digest)

    def refused(self, kind: type[Exception], coroutine: Coroutine[Any, Any, Any]) -> None:
        with pytest.raises(kind):
            self.run(coroutine)


def test_names_are_a_dictionary(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever is tagged, moved, deleted and asked for in whatever order."""
    with asyncio.Runner() as runner:
        opening = open_storage(str(tmp_path_factory.mktemp("names") / "db"))
        NameMachine.storage, NameMachine.run = runner.run(opening.__aenter__()), staticmethod(runner.run)
        try:
            run_state_machine_as_test(  # type: ignore[no-untyped-call]
                NameMachine,
                settings=settings(
                    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
                ),
            )
        finally:
            runner.run(opening.__aexit__(None, None, None))
