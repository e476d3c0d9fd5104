import time

import pytest

from tartlet.errors import DeadlockError, InvalidHandleError
from tartlet.runtime.event_table import EventStatus, EventTable
from tartlet.runtime.handles import HandleTable
from tartlet.wasm.host_function import SUSPEND
from tartlet.wasm.timers import Timers

LATER_NS = 10**12


class World:
    """An event table with its timers, and what its fiber was resumed with."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.handles = HandleTable(None)
        self.resumed: list[object] = []
        self.table = EventTable(self.handles, self.timers, lambda action: self.resumed.append(action()))

    def pass_time(self) -> None:
        """Runs the timers that are due in the far future."""
        while (action := self.timers.pop_due(time.monotonic_ns() + 2 * LATER_NS)) is not None:
            action()


def test_ready_events_come_in_the_order_given() -> None:
    """A poll with ready events gives all of them at once, in the order in which it names them."""
    world = World()
    first, second, third = (world.table.add() for _ in range(3))
    world.table.set_ready(first)
    world.table.set_ready(third)

    assert world.table.poll([third.number, second.number, first.number], None) == [third.number, first.number]


def test_a_wait_ends_when_one_is_ready() -> None:
    """What becomes ready in one step wakes the fiber once."""
    world = World()
    first, second = world.table.add(), world.table.add()
    assert world.table.poll([first.number, second.number], None) is None

    world.table.set_ready(second)
    world.table.set_ready(first)
    world.table.wake()
    world.table.wake()

    assert world.resumed == [[first.number, second.number]]


def test_a_wait_with_an_action() -> None:
    """What is ready is answered at once; else the wait ends with what the action gives, once."""
    world = World()
    first, second = world.table.add(), world.table.add()
    world.table.set_ready(first)
    assert world.table.when_ready(first, lambda: "at once") == "at once"
    assert world.table.when_ready(second, lambda: "later") is SUSPEND

    world.table.wake()
    assert world.resumed == []
    world.table.set_ready(second)
    world.table.wake()
    world.table.wake()
    assert world.resumed == ["later"]


def test_a_wait_ends_with_its_time() -> None:
    """A timeout resumes with nothing, once, and an event that comes later does not resume again."""
    world = World()
    event = world.table.add()
    assert world.table.poll([event.number], LATER_NS) is None

    world.pass_time()
    world.table.set_ready(event)
    world.table.wake()

    assert world.resumed == [[]]


def test_a_timeout_of_zero_only_looks() -> None:
    """Nothing ready and no time: an empty answer at once."""
    world = World()

    assert world.table.poll([world.table.add().number], 0) == []
    assert world.table.poll([], 0) == []


def test_a_timer_stays_ready() -> None:
    """A timer's event is level-triggered: it is ready in every poll until it is dropped."""
    world = World()
    event = world.table.add_timer(LATER_NS)
    assert event.status is EventStatus.PENDING

    world.pass_time()

    assert world.table.poll([event.number], None) == [event.number]
    assert world.table.poll([event.number], None) == [event.number]
    world.table.drop(event)
    with pytest.raises(InvalidHandleError):
        world.table.poll([event.number], None)


@pytest.mark.parametrize("spent", [0, 2])
def test_waiting_for_what_cannot_happen_is_a_deadlock(spent: int) -> None:
    """No event, or only events that can never be ready again, and no timeout: a deadlock."""
    world = World()
    events = [world.table.add() for _ in range(spent)]
    for event in events:
        event.status = EventStatus.SPENT

    with pytest.raises(DeadlockError):
        world.table.poll([event.number for event in events], None)


def test_clearing_cancels_every_timer() -> None:
    """After the end of a run no timer of it is left."""
    world = World()
    world.table.add_timer(LATER_NS)
    world.table.poll([world.table.add().number], LATER_NS)

    world.table.clear()

    assert len(world.timers) == 0
    world.pass_time()
    assert world.resumed == []


def test_dropping_a_timer_cancels_it() -> None:
    """A dropped timer holds neither a handle nor a place among the timers."""
    world = World()

    world.table.drop(world.table.add_timer(LATER_NS))

    assert (len(world.timers), len(world.handles)) == (0, 0)
