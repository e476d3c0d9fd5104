"""Turns of tenants at a few places."""

from __future__ import annotations

import asyncio

import pytest

from tartlet.errors import UnavailableError
from tartlet.server.compile.turns import Turns


class Work:
    """Tasks that take turns, and go on until they are told to end."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    def start(self, tenant: str, name: str) -> asyncio.Task[None]:
        """Begin when it is the tenant's turn."""
        self._ends[name] = asyncio.Event()
        return asyncio.create_task(self._work(tenant, name))

    async def end(self, *tasks: tuple[str, asyncio.Task[None]]) -> None:
        """Let tasks end, one after the other."""
        for name, task in tasks:
            self._ends[name].set()
            await task

    async def _work(self, tenant: str, name: str) -> None:
        async with self.turns.turn(tenant):
            self.begun.append(name)
            await self._ends[name].wait()


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_tenant_cannot_keep_another_waiting() -> None:
    """A place is left for others, and who has fewest comes first."""
    work = Work(Turns(places=2, per_tenant=1, waiting_per_tenant=10, waiting=100))
    tasks = {name: work.start("bomber", name) for name in ("a1", "a2", "a3")}
    await settle()
    assert work.begun == ["a1"]

    tasks["b1"], tasks["c1"], tasks["b2"] = work.start("b", "b1"), work.start("c", "c1"), work.start("b", "b2")
    await settle()
    assert work.begun == ["a1", "b1"]

    await work.end(("b1", tasks["b1"]))
    await settle()
    assert work.begun == ["a1", "b1", "c1"]
    await work.end(*((name, tasks[name]) for name in ("c1", "b2", "a1", "a2", "a3")))
    assert work.begun == ["a1", "b1", "c1", "b2", "a2", "a3"]


async def test_too_many_that_wait_are_refused() -> None:
    """By tenant."""
    work = Work(Turns(places=1, per_tenant=1, waiting_per_tenant=1, waiting=100))
    tasks = [work.start("a", name) for name in ("a1", "a2")]
    await settle()
    with pytest.raises(UnavailableError, match="1 uploads of yours wait already"):
        await work.start("a", "a3")
    tasks.append(work.start("b", "b1"))
    await settle()
    await work.end(("a1", tasks[0]), ("a2", tasks[1]), ("b1", tasks[2]))

    assert work.turns.num_waiting == 0


async def test_many_tenants_together_fill_no_queue_for_another() -> None:
    """When many wait in all, each may have one more waiting, and no more."""
    work = Work(Turns(places=1, per_tenant=1, waiting_per_tenant=10, waiting=2))
    tasks = [work.start("a", name) for name in ("a1", "a2", "a3")]
    await settle()
    with pytest.raises(UnavailableError, match="of others, too"):
        await work.start("a", "a4")
    tasks.append(work.start("b", "b1"))
    await settle()
    with pytest.raises(UnavailableError, match="of others, too"):
        await work.start("b", "b2")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("moment", ["waiting", "handed out", "holding"])
async def test_whoever_is_cancelled_gives_its_place_back(moment: str) -> None:
    """While waiting, in the moment of its turn, or at it."""
    work = Work(Turns(places=1, per_tenant=1, waiting_per_tenant=10, waiting=100))
    first = work.start("a", "a1")
    await settle()
    second, third = work.start("a", "a2"), work.start("b", "b1")
    await settle()
    if moment == "waiting":
        second.cancel()
        await work.end(("a1", first))
    elif moment == "handed out":
        work._ends["b1"].set()
        await work.end(("a1", first))
        second.cancel()
    else:
        work._ends["b1"].set()
        await work.end(("a1", first))
        await settle()
        second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    await work.end(("b1", third))

    last = work.start("a", "a3")
    await work.end(("a3", last))
    assert work.turns.num_waiting == 0
