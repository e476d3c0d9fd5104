from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartlet.errors import QuotaError
from tartlet.server.front.admission import Admission, Place
from tartlet.server.front.limits import TenantLimits


class Clock:
    """A clock that the tests move."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def entering(admission: Admission, tenant: str, limits: TenantLimits, number: int = 1) -> list[asyncio.Task[Place]]:
    return [asyncio.create_task(admission.enter(tenant, limits)) for _ in range(number)]


def test_requests_have_a_rate() -> None:
    """A minute's worth may come at once; then as many as time has passed for. Others are not concerned."""
    clock = Clock()
    admission, limits = Admission(clock=clock), TenantLimits(requests_per_minute=30)
    for _ in range(30):
        admission.admit_request("acme", limits)
    with pytest.raises(QuotaError) as caught:
        admission.admit_request("acme", limits)
    admission.admit_request("globex", limits)

    error = caught.value
    assert (error.code, error.limit, error.used, error.allowed) == ("rate_limited", "requests_per_minute", 31, 30)
    assert error.retry_after_s == 2.0
    clock.seconds += 1.5
    with pytest.raises(QuotaError) as caught:
        admission.admit_request("acme", limits)
    assert (caught.value.used, caught.value.retry_after_s) == (31, 0.5)
    clock.seconds += 0.5
    admission.admit_request("acme", limits)
    with pytest.raises(QuotaError):
        admission.admit_request("acme", limits)
    clock.seconds += 3600
    for _ in range(30):
        admission.admit_request("acme", limits)
    with pytest.raises(QuotaError):
        admission.admit_request("acme", limits)


def test_a_rate_that_is_changed_holds_at_once() -> None:
    """A lower one takes what has been saved up; none lets everything through."""
    admission = Admission(clock=Clock())
    admission.admit_request("acme", TenantLimits(requests_per_minute=1000))
    admission.admit_request("acme", TenantLimits(requests_per_minute=1))
    with pytest.raises(QuotaError):
        admission.admit_request("acme", TenantLimits(requests_per_minute=1))
    for _ in range(100):
        admission.admit_request("acme", TenantLimits(requests_per_minute=None))


async def test_tokens_have_a_rate() -> None:
    """A run may overdraw it, and the next starts when the debt is paid."""
    clock = Clock()
    admission, limits = Admission(clock=clock), TenantLimits(tokens_per_minute=600)
    (await admission.enter("acme", limits)).leave(1200)
    with pytest.raises(QuotaError) as caught:
        await admission.enter("acme", limits)

    error = caught.value
    assert (error.code, error.limit, error.used, error.allowed) == ("rate_limited", "tokens_per_minute", 1200, 600)
    assert error.retry_after_s == pytest.approx(60.1)
    clock.seconds += 60.1
    (await admission.enter("acme", limits)).leave(0)
    assert admission.num_live == 0


async def test_tokens_are_charged_while_they_come() -> None:
    """Each once. Another run cannot start in the debt of one that goes on; at the rate it makes none."""
    clock = Clock()
    admission, limits = Admission(clock=clock), TenantLimits(tokens_per_minute=600)
    place = await admission.enter("acme", limits)
    for total in (100, 100, 500, 700):
        place.charge(total)
    with pytest.raises(QuotaError) as caught:
        await admission.enter("acme", limits)
    assert (caught.value.code, caught.value.used) == ("rate_limited", 700)

    for _ in range(10):  # at the rate, for ten minutes
        clock.seconds += 60
        total += 600
        place.charge(total)
    place.leave(total + 600)
    place.charge(10**6)
    with pytest.raises(QuotaError) as caught:
        await admission.enter("acme", limits)
    assert caught.value.used == 1300


async def test_who_waits_is_refused_if_the_tokens_are_gone() -> None:
    """When its turn comes; and the place is free."""
    admission, limits = Admission(clock=Clock()), TenantLimits(tokens_per_minute=600, runs_at_once=1)
    place = await admission.enter("acme", limits)
    (waiting,) = entering(admission, "acme", limits)
    await settle()
    place.leave(1000)
    with pytest.raises(QuotaError) as caught:
        await waiting

    assert caught.value.limit == "tokens_per_minute"
    assert (admission.num_live, admission.num_waiting) == (0, 0)


async def test_runs_wait_for_places_in_their_order() -> None:
    """As many go on as may."""
    admission, limits = Admission(), TenantLimits(runs_at_once=2)
    tasks = entering(admission, "acme", limits, 5)
    await settle()
    assert [task.done() for task in tasks] == [True, True, False, False, False]
    assert (admission.num_live, admission.num_waiting) == (2, 3)
    tasks[1].result().leave()
    await settle()
    assert [task.done() for task in tasks] == [True, True, True, False, False]
    for number in (0, 2, 3, 4):
        (await tasks[number]).leave(5)
    assert (admission.num_live, admission.num_waiting) == (0, 0)


async def test_a_place_is_left_once() -> None:
    """However often it is said."""
    admission, limits = Admission(), TenantLimits(runs_at_once=1)
    first = await admission.enter("acme", limits)
    first.leave()
    second = await admission.enter("acme", limits)
    first.leave()

    assert admission.num_live == 1
    second.leave()


async def test_a_queue_is_bounded() -> None:
    """What does not fit is refused with the numbers and a time; other tenants have queues of their own."""
    admission, limits = Admission(), TenantLimits(runs_at_once=1, queue_length=2)
    tasks = entering(admission, "acme", limits, 3)
    await settle()
    with pytest.raises(QuotaError) as caught:
        await admission.enter("acme", limits)
    other = await admission.enter("globex", limits)

    error = caught.value
    assert (error.code, error.limit, error.used, error.allowed) == ("queue_full", "queue_length", 3, 2)
    assert error.retry_after_s is not None
    assert error.retry_after_s >= 1
    other.leave()
    for task in tasks:
        (await task).leave()


async def test_who_has_waited_too_long_is_refused() -> None:
    """And its place in the queue is free."""
    admission, limits = Admission(), TenantLimits(runs_at_once=1, queue_length=1, queue_wait_ms=1)
    first = await admission.enter("acme", limits)
    for _ in range(2):
        with pytest.raises(QuotaError) as caught:
            await admission.enter("acme", limits)
        assert (caught.value.code, caught.value.limit) == ("queue_timeout", "queue_wait_ms")
    first.leave()
    assert (admission.num_live, admission.num_waiting) == (0, 0)


async def test_a_wait_can_be_cancelled() -> None:
    """Those behind move up."""
    admission, limits = Admission(), TenantLimits(runs_at_once=1)
    tasks = entering(admission, "acme", limits, 4)
    await settle()
    tasks[1].cancel()
    tasks[0].result().leave()  # before the cancelled one has run
    tasks[3].cancel()
    await settle()

    assert [task.cancelled() for task in tasks] == [False, True, False, True]
    tasks[2].result().leave()
    assert (admission.num_live, admission.num_waiting) == (0, 0)


async def test_a_place_that_comes_with_the_cancellation_goes_to_the_next() -> None:
    """It is not lost."""
    admission, limits = Admission(), TenantLimits(runs_at_once=1)
    tasks = entering(admission, "acme", limits, 3)
    await settle()
    tasks[0].result().leave()  # gives the place to the second, which is cancelled before it hears of that
    tasks[1].cancel()
    await settle()

    assert tasks[1].cancelled()
    tasks[2].result().leave()
    assert (admission.num_live, admission.num_waiting) == (0, 0)


async def test_tenants_take_turns_for_the_servers_places() -> None:
    """One that has many runs waiting does not keep another waiting for all of them."""
    admission, limits = Admission(most_runs=1), TenantLimits()
    first = await admission.enter("acme", limits)
    many, few = entering(admission, "acme", limits, 4), entering(admission, "globex", limits, 2)
    order = []
    for name, tasks in (("acme", many), ("globex", few)):
        for task in tasks:
            task.add_done_callback(lambda _, name=name: order.append(name))  # type: ignore[misc]
    await settle()
    first.leave()
    for _ in range(6):
        await settle()
        next(task for task in many + few if task.done() and not task.result()._is_left).result().leave()

    assert order[:4] in (["globex", "acme"] * 2, ["acme", "globex"] * 2)
    assert order[4:] == ["acme"] * 2
    assert admission.num_live == 0


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 3), st.integers(0, 5))
def test_places_are_neither_lost_nor_given_twice(seed: int, most: int, at_once: int, queue: int) -> None:
    """Whoever comes, leaves and gives up in whatever order."""
    randomness = random.Random(seed)

    async def play() -> None:
        admission = Admission(most_runs=most)
        limits = TenantLimits(runs_at_once=at_once, queue_length=queue)
        live = {"acme": 0, "globex": 0}

        async def run(tenant: str) -> None:
            try:
                place = await admission.enter(tenant, limits)
            except QuotaError:
                return
            live[tenant] += 1
            assert live[tenant] <= at_once
            assert sum(live.values()) <= most
            try:
                for _ in range(randomness.randrange(5)):
                    await asyncio.sleep(0)
            finally:
                live[tenant] -= 1
                place.leave(1)

        tasks: list[asyncio.Task[None]] = []
        for _ in range(60):
            tasks.append(asyncio.create_task(run(randomness.choice(["acme", "globex"]))))
            if randomness.random() < 0.5:
                randomness.choice(tasks).cancel()
            if randomness.random() < 0.5:
                await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert [task for task in tasks if not task.cancelled() and task.exception() is not None] == []
        assert (admission.num_live, admission.num_waiting) == (0, 0)

    asyncio.run(play())
