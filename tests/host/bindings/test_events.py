from typing import Any

import pytest

from tartlet import DeadlockError, InvalidHandleError

pytestmark = pytest.mark.runner


def test_timers_become_ready_in_time(guest: Any) -> None:
    """The shorter timer is ready first; both are at the end, in the order of the poll."""
    first, both, outcome = guest("""
        late, soon = events.timer(20_000_000), events.timer(1_000_000)
        first = events.poll([late, soon], None)
        events.poll([late], None)
        both = events.poll([late, soon], 0)
        outcome = events.outcome(late)
        return first == [soon], both == [late, soon], outcome
    """)

    assert (first, both, outcome) == (True, True, None)


def test_an_outcome_frees_the_event(guest: Any) -> None:
    """After its outcome, or after it was dropped, an event's number means nothing."""
    for free in ("events.poll([event], None); events.outcome(event)", "events.drop_event(event)"):
        with pytest.raises(InvalidHandleError, match="no event by the number 1"):
            guest(f"""
                event = events.timer(0)
                {free}
                events.poll([event], 0)
            """)


def test_the_outcome_of_what_is_not_ready(guest: Any) -> None:
    """It is refused, and the event stays."""
    assert guest("""
        event = events.timer(10 ** 12)
        code, message = refused(events.outcome, event)
        return code, message, events.poll([event], 0)
    """) == ["UNAVAILABLE", "event 1 is not ready yet", []]


def test_a_wait_without_an_end_is_a_deadlock(guest: Any) -> None:
    """Nothing to wait for and no timeout ends the run by that name."""
    with pytest.raises(DeadlockError):
        guest("events.poll([], None)")


def test_handles_of_other_kinds_are_no_events(guest: Any) -> None:
    """The number of a model or a context is not an event."""
    with pytest.raises(InvalidHandleError, match="no event by the number 1"):
        guest("""
            model = models.Model.open(None)
            events.poll([1], 0)
        """)


def test_asyncio_works_on_it(guest: Any) -> None:
    """sleep, timeouts, queues and task groups run on the host's events."""
    assert guest("""
        queue = asyncio.Queue()

        async def produce():
            for number in range(3):
                await asyncio.sleep(0.001)
                await queue.put(number)

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            got = [await queue.get() for _ in range(3)]
        try:
            async with asyncio.timeout(0.005):
                await asyncio.sleep(3600)
        except TimeoutError:
            got.append("timeout")
        return got
    """) == [0, 1, 2, "timeout"]
