from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from tartlet.errors import GuestError
from tartlet.server.front import runs
from tartlet.server.front.errors import ApiError
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.run_events import Outcome
from tartlet.server.front.runs import EarlierRun, RunRegistry, Terms
from tartlet.server.front.storage import Claim
from tartlet.server.requests import ProgramRef
from tartlet.server.sandboxes import Sandboxes
from tests.host.server.front.conftest import ECHO, ENDLESS

pytestmark = pytest.mark.runner


class Books:
    """A policy that notes what it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[tuple[str, str]] = []
        self.charged: list[str] = []
        self.refusal: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.begin_gate: asyncio.Event | None = None
        self.held = 0
        self.fails_at_end = False

    async def admit(self, run: LiveRun, limits: Mapping[str, int | None], claim: Claim | None) -> Terms:
        self.held += 1
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.refusal is not None:
                raise self.refusal
        except BaseException:
            self.held -= 1
            raise
        return Terms({**limits, "max_cpu_ms": 5000}, 2.0)

    def charge(self, run: LiveRun) -> None:
        self.charged.append(run.run_id)

    async def begin(self, run: LiveRun, claim: Claim | None) -> None:
        if self.begin_gate is not None:
            await self.begin_gate.wait()
        if claim is not None:
            raise EarlierRun("run_earlier")
        self.begun.append(run.run_id)

    def release(self, run: LiveRun) -> None:
        self.held -= 1

    async def end(self, run: LiveRun, outcome: Outcome) -> None:
        assert not run.has_ended
        self.ended.append((run.run_id, outcome.status))
        if self.fails_at_end:
            raise OSError("no space left on device")


@pytest.fixture
def books() -> Books:
    return Books()


@pytest.fixture
async def registry(sandboxes: Sandboxes, books: Books) -> AsyncIterator[RunRegistry]:
    registry = RunRegistry(sandboxes, books)
    yield registry
    await registry.close()
    assert registry.num_live == 0
    assert len(books.begun) == len(books.ended)
    assert books.held == 0


@pytest.fixture
def echo(store_source) -> ProgramRef:  # type: ignore[no-untyped-def]
    return store_source(ECHO)


@pytest.fixture
def endless(store_source) -> ProgramRef:  # type: ignore[no-untyped-def]
    return store_source(ENDLESS)


async def test_a_run_from_start_to_end(registry: RunRegistry, books: Books, echo: ProgramRef) -> None:
    """Its result is there, its end is in the books, and it can be found."""
    run = await registry.start("acme", echo, '{"value": 3}')

    assert await run.result_json() == "3"
    assert books.ended == [(run.run_id, "succeeded")]
    assert registry.find("acme", run.run_id) is run
    assert registry.live_of("acme") == []


async def test_a_run_that_fails(registry: RunRegistry, books: Books, echo: ProgramRef) -> None:
    """The error is the run's, and in the books."""
    run = await registry.start("acme", echo, '{"value": "fail"}')

    with pytest.raises(GuestError, match="as asked"):
        await run.result_json()
    assert books.ended == [(run.run_id, "failed")]


async def test_other_tenants_find_nothing(registry: RunRegistry, endless: ProgramRef) -> None:
    """While a run goes on and after it, its id means nothing to others."""
    run = await registry.start("acme", endless, "{}")
    for _ in range(2):
        with pytest.raises(ApiError) as error:
            registry.find("globex", run.run_id)
        assert error.value.status == 404
        assert registry.live_of("globex") == []
        run.cancel()
        await run.ended()
    with pytest.raises(ApiError):
        registry.find("acme", "run_x")


async def test_what_may_not_start_leaves_nothing(registry: RunRegistry, books: Books, echo: ProgramRef) -> None:
    """The refusal is the caller's; there is no run."""
    books.refusal = ApiError(429, "too_many_runs", "slowly")
    with pytest.raises(ApiError, match="slowly"):
        await registry.start("acme", echo, "{}")

    assert registry.num_live == 0


async def test_who_stops_waiting_for_a_place_gives_it_up(
    registry: RunRegistry, books: Books, endless: ProgramRef
) -> None:
    """Nothing is held for a client that is gone."""
    books.gate = asyncio.Event()
    starting = asyncio.create_task(registry.start("acme", endless, "{}"))
    while not books.held:
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await registry.drain(60)

    assert (books.held, books.begun) == (0, [])


async def test_who_goes_while_a_run_begins_ends_it(registry: RunRegistry, books: Books, endless: ProgramRef) -> None:
    """What was written down all the same has its end in the books."""
    books.begin_gate = asyncio.Event()
    starting = asyncio.create_task(registry.start("acme", endless, "{}"))
    while not books.held:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    books.begin_gate.set()
    await registry.drain(60)

    assert [status for _, status in books.ended] == ["cancelled"]


async def test_a_request_that_has_a_run_already(registry: RunRegistry, echo: ProgramRef) -> None:
    """The caller hears which; no second one is started."""
    with pytest.raises(EarlierRun) as earlier:
        await registry.start("acme", echo, "{}", claim=Claim("k", "h"))

    assert earlier.value.run_id == "run_earlier"
    assert registry.num_live == 0


async def test_a_drain_waits_then_cancels(registry: RunRegistry, books: Books, endless: ProgramRef) -> None:
    """New runs are refused meanwhile; what does not end in time ends with a clear reason."""
    run = await registry.start("acme", endless, "{}", is_detached=True)
    draining = asyncio.create_task(registry.drain(0.2))
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as refused:
        await registry.start("acme", endless, "{}")
    await draining

    assert refused.value.status == 503
    assert "shut down" in str((await run.ended()).error())


async def test_books_that_fail_hold_nobody_up(registry: RunRegistry, books: Books, echo: ProgramRef) -> None:
    """With a full disk, the client still gets its result."""
    books.fails_at_end = True

    assert await (await registry.start("acme", echo, "{}")).result_json() == "null"


async def test_only_so_many_ended_runs_are_kept(
    registry: RunRegistry, echo: ProgramRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest are forgotten."""
    monkeypatch.setattr(runs, "KEPT_RUNS", 2)
    ended = []
    for _ in range(3):
        ended.append(await registry.start("acme", echo, "{}"))
        await ended[-1].ended()

    assert [registry.get("acme", run.run_id) is None for run in ended] == [True, False, False]


async def test_runs_that_go_on_are_charged(registry: RunRegistry, books: Books, endless: ProgramRef) -> None:
    """Each, and what it has used is told; one that has ended is not."""
    run = await registry.start("acme", endless, "{}", is_detached=True)
    async for _ in run.follow():
        break
    usages = registry.charge()
    run.cancel()
    await run.ended()

    assert books.charged == [run.run_id]
    assert usages[run.run_id].host_calls > 0
    assert registry.charge() == {}
