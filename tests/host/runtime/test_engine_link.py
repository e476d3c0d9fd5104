import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from tartlet.runtime import engine_link
from tartlet.runtime.engine_link import NEVER, EngineLink
from tartlet_engine.api import (
    Chunk,
    Command,
    Done,
    EngineClient,
    EngineError,
    EngineStopped,
    ErrorCode,
    Event,
    FreeContext,
)


class Wire:
    """An engine that is only listened to, and an executor that runs what is posted when it is told to."""

    def __init__(self) -> None:
        self.batches: list[list[Command]] = []
        self.runs: list[int | None] = []
        self.posted: list[Callable[[], object]] = []
        self.has_woken = False
        self.stops: list[EngineError] = []
        self.say: Any = None
        self.ids = itertools.count(1)
        self.link = EngineLink(cast(EngineClient, self), self, self.stops.append)

    def new_id(self) -> int:
        """The next number."""
        return next(self.ids)

    def submit(self, commands: Sequence[Command], run_id: int | None = None) -> None:
        """Notes a batch of commands, and whose they are."""
        self.batches.append(list(commands))
        self.runs.append(run_id)

    def listen(self, listener: Callable[[list[Event]], None] | None) -> None:
        """Notes whom to tell."""
        self.say = listener

    def post(self, action: Callable[[], object]) -> None:
        """Notes what is to be done on the executor's thread."""
        self.posted.append(action)

    def turn(self) -> None:
        """Does it."""
        actions, self.posted = self.posted, []
        for action in actions:
            action()


class Target:
    """A run that notes what it hears, and how often it is woken."""

    def __init__(self) -> None:
        self.heard: list[Event] = []
        self.num_wakes = 0

    @property
    def run(self) -> Any:
        """Itself."""
        return self

    def handle(self, event: Event, at_ns: int) -> None:
        """Notes an event."""
        self.heard.append(event)

    def wake(self) -> None:
        """Notes a wake-up."""
        self.num_wakes += 1


def chunk(generation_id: int) -> Chunk:
    return Chunk(generation_id, (1,), "x")


def test_commands_of_fibers_that_were_woken_together_leave_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """While another fiber is about to have its turn, commands wait for its; but not for long."""
    wire = Wire()
    wire.has_woken = True
    wire.link.submit(FreeContext(1), 1)
    wire.turn()
    assert wire.batches == []
    wire.link.submit(FreeContext(2), 2)
    wire.has_woken = False
    wire.turn()
    assert wire.batches == [[FreeContext(1)], [FreeContext(2)]]

    wire.has_woken = True
    monkeypatch.setattr(engine_link, "_MOST_KEPT_NS", 0)
    wire.link.submit(FreeContext(3), 1)
    wire.turn()
    assert wire.batches[2:] == [[FreeContext(3)]]
    wire.turn()
    assert len(wire.batches) == 3


def test_commands_of_one_turn_leave_together() -> None:
    """What is submitted before the turn is over goes out as one batch, in order."""
    wire = Wire()
    wire.link.submit(FreeContext(1), 7)
    wire.link.submit(FreeContext(2), 7)

    wire.turn()
    wire.link.submit(FreeContext(3), 7)
    wire.turn()

    assert wire.batches == [[FreeContext(1), FreeContext(2)], [FreeContext(3)]]


def test_events_reach_their_targets_and_wake_each_run_once() -> None:
    """One step's events are routed by id, strangers' are dropped, and each run concerned is woken once."""
    wire, first, second = Wire(), Target(), Target()
    wire.link.register(1, first)
    wire.link.register(2, first)
    wire.link.register(3, second)

    wire.say([chunk(1), Done(2), chunk(1), chunk(99)])
    wire.turn()

    assert first.heard == [chunk(1), Done(2), chunk(1)]
    assert (first.num_wakes, second.num_wakes) == (1, 0)


def test_quiet_chunks_do_not_wake_the_executor() -> None:
    """Chunks that nobody waits for are kept until something else comes, in order."""
    wire, target = Wire(), Target()
    wire.link.register(1, target, quiet_until_ns=NEVER)
    wire.link.register(2, target)

    wire.say([chunk(1)])
    wire.say([chunk(1)])
    assert wire.posted == []

    wire.say([chunk(1), Done(2)])
    wire.turn()
    assert target.heard == [chunk(1), chunk(1), chunk(1), Done(2)]


def test_a_quiet_time_ends() -> None:
    """A chunk that comes after it is delivered at once, with those before it."""
    wire, target = Wire(), Target()
    wire.link.register(1, target)
    wire.link.set_quiet_until(1, NEVER)
    wire.say([chunk(1)])
    assert wire.posted == []

    wire.link.set_quiet_until(1, time.monotonic_ns())
    wire.say([chunk(1)])
    wire.turn()
    assert target.heard == [chunk(1), chunk(1)]


def test_quiet_chunks_do_not_pile_up() -> None:
    """After some steps even quiet chunks are delivered."""
    wire, target = Wire(), Target()
    wire.link.register(1, target, quiet_until_ns=NEVER)

    for _ in range(64):
        wire.say([chunk(1)])
    wire.turn()

    assert len(target.heard) == 64


def test_catching_up_takes_quiet_chunks_only() -> None:
    """A host function may look at what has been generated; what could wake somebody waits for its delivery."""
    wire, target = Wire(), Target()
    wire.link.register(1, target, quiet_until_ns=NEVER)
    wire.link.register(2, target)
    wire.say([chunk(1)])
    wire.say([Done(2)])

    wire.link.catch_up()

    assert (target.heard, target.num_wakes) == ([chunk(1)], 0)


def test_nothing_is_heard_after_the_end() -> None:
    """After a run's end its events are dropped."""
    wire, target = Wire(), Target()
    wire.link.register(1, target)
    wire.link.register(2, target, quiet_until_ns=NEVER)
    wire.link.unregister_run(target)

    wire.say([chunk(1), chunk(2)])
    wire.turn()

    assert target.heard == []


def test_the_end_of_the_engine() -> None:
    """`EngineStopped` goes to the owner."""
    wire = Wire()
    error = EngineError(ErrorCode.UNAVAILABLE, "gone")

    wire.say([EngineStopped(error)])
    wire.turn()

    assert wire.stops == [error]


def test_commands_leave_by_run() -> None:
    """Each run's commands are a batch of their own, in order; so are those that concern no run."""
    wire = Wire()
    for context_id, run_id in ((1, 7), (2, None), (3, 8), (4, 7)):
        wire.link.submit(FreeContext(context_id), run_id)
    wire.turn()

    batches = dict(zip(wire.runs, wire.batches, strict=True))
    assert batches == {7: [FreeContext(1), FreeContext(4)], None: [FreeContext(2)], 8: [FreeContext(3)]}


def test_a_closed_link_listens_no_more() -> None:
    """It sends what is left, and gives the listener's place back."""
    wire = Wire()
    wire.link.submit(FreeContext(1), 7)
    wire.link.close()

    assert wire.batches == [[FreeContext(1)]]
    assert wire.say is None
