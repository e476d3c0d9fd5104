"""What a run can wait for, and the one wait that it may be in. Lives on the executor's thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Protocol

from tartlet.errors import DeadlockError
from tartlet.runtime.handles import HandleTable
from tartlet.wasm.host_function import SUSPEND
from tartlet_engine.api import EngineError, ErrorCode

_MOST_SHOWN = 20  # of what a deadlocked run waits for


class EventStatus(Enum):
    """Whether something to wait for has happened."""

    PENDING = auto()
    READY = auto()
    SPENT = auto()  # all that it announced has been read: it can never become ready again


class Timer(Protocol):
    """What `Clock.at` gives."""

    def cancel(self) -> None:
        """Make it not happen."""
        ...


class Clock(Protocol):
    """The executor, as far as events need it."""

    def at(self, deadline_ns: int, action: Callable[[], None]) -> Timer:
        """Call `action` at that time of `time.monotonic_ns`, on the executor's thread."""
        ...


class Event:
    """Something to wait for. Level-triggered: it stays ready until its owner says otherwise."""

    __slots__ = ("error", "number", "on_drop", "own_work", "status")

    def __init__(self, own_work: str = "") -> None:
        self.number = 0
        self.status = EventStatus.PENDING
        self.error: EngineError | None = None
        self.own_work = own_work  # what only the run itself can do to make it ready, such as "a change of 'x'"
        self.on_drop: Callable[[], None] | None = None  # called when it is freed


class EventTable:
    """The events of one run, and the `poll` in which its fiber is suspended, if it is.

    Args:
        handles: The run's handles; events are among them.
        clock: Where timers are set.
        complete: Completes the host call in which the fiber is suspended with what a function returns or raises.
    """

    def __init__(self, handles: HandleTable, clock: Clock, complete: Callable[[Callable[[], object]], None]) -> None:
        self._handles = handles
        self._clock = clock
        self._complete = complete
        self._waiting: Sequence[Event] | None = None
        self._then: Callable[[], object] | None = None  # gives the result of the wait; None: the ready events
        self._timeout: Timer | None = None
        self._timers: dict[int, Timer] = {}
        self.on_timer: Callable[[], object] = self.wake  # called when a timer has become ready
        # Whether somebody else in the run will do something, who could end a wait that only the run can end.
        self.can_others_go_on: Callable[[], bool] = lambda: False

    def add(self, own_work: str = "") -> Event:
        """A new pending event; `own_work` is what only the run itself can do to make it ready, if that is so."""
        event = Event(own_work)
        event.number = self._handles.add(event)
        return event

    def add_timer(self, delay_ns: int) -> Event:
        """A new event that becomes ready after a delay."""
        event = self.add()

        def ring() -> None:
            self._timers.pop(event.number, None)
            self.set_ready(event)
            self.on_timer()

        self._timers[event.number] = self._clock.at(time.monotonic_ns() + delay_ns, ring)
        return event

    def call_at(self, event: Event, deadline_ns: int, action: Callable[[], None]) -> None:
        """Call `action` at that time of `time.monotonic_ns`, unless the event is freed or the run has ended by then."""
        self._timers[event.number] = self._clock.at(deadline_ns, action)

    def get(self, number: int) -> Event:
        """The event of that number. Raises InvalidHandleError."""
        return self._handles.get(number, Event)

    def set_ready(self, event: Event, error: EngineError | None = None) -> None:
        """Mark an event as ready; call `wake` when all that happened at the same time is marked."""
        event.status = EventStatus.READY
        event.error = error

    def drop(self, event: Event) -> None:
        """Free an event."""
        self._handles.discard(event.number)
        event.status = EventStatus.SPENT
        if event.on_drop is not None:
            event.on_drop()
        timer = self._timers.pop(event.number, None)
        if timer is not None:
            timer.cancel()

    def poll(self, numbers: list[int], timeout_ns: int | None) -> list[int] | None:
        """The ready ones among the events, or None if the fiber now has to wait.

        In a wait that only the run itself could end, which waits, all events become ready with the error `deadlock`.
        Raises InvalidHandleError, or DeadlockError if nothing could end the wait and no event can say so.
        """
        events = [self.get(number) for number in numbers]
        ready = [event.number for event in events if event.status is EventStatus.READY]
        if ready or timeout_ns == 0:
            return ready
        if timeout_ns is None and _needs_the_run(events) and not self.can_others_go_on():
            return self._fail_as_deadlock(events)
        self._waiting = events
        if timeout_ns is not None:
            self._timeout = self._clock.at(time.monotonic_ns() + timeout_ns, self._time_out)
        return None

    def when_ready(self, event: Event, action: Callable[[], object]) -> object:
        """What `action` returns or raises: at once, or `SUSPEND` and then, if the event is still to become ready."""
        if event.status is not EventStatus.PENDING:
            return action()
        self._waiting, self._then = (event,), action
        return SUSPEND

    def wake(self) -> None:
        """End the wait if one of its events is ready."""
        if self._waiting is not None:
            ready = [event.number for event in self._waiting if event.status is EventStatus.READY]
            if ready:
                self._end_wait(ready)

    def clear(self) -> None:
        """Cancel every timer, and forget the wait."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._waiting = self._then = None
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def look_for_deadlock(self) -> None:
        """End a wait that nobody is left to end: call it when somebody else in the run has ceased to do something."""
        events = self._waiting
        if events is None or self._timeout is not None or not _needs_the_run(events) or self.can_others_go_on():
            return
        try:
            numbers = self._fail_as_deadlock(events)
        except DeadlockError as error:
            self._end_wait_with(_raiser(error))
        else:
            self._end_wait(numbers)

    def _fail_as_deadlock(self, events: Sequence[Event]) -> list[int]:
        """Let each of the pending events fail, as nobody is left to make it ready; their numbers."""
        pending = [event for event in events if event.status is EventStatus.PENDING]
        if not pending:
            raise DeadlockError(
                "the program waits, without a timeout, for nothing that could still happen",
                hint="Wait for a generation or a timer that is under way, or give the wait a timeout.",
            )
        works = list(dict.fromkeys(event.own_work for event in pending))
        shown = ", ".join(works[:_MOST_SHOWN])
        if len(works) > _MOST_SHOWN:
            shown += f" and {len(works) - _MOST_SHOWN:,} more"
        error = EngineError(
            ErrorCode.DEADLOCK,
            f"everything in the run waits, and only the run could end that: it waits for {shown}",
            "Let somebody do it before waiting for it, or give the wait a timeout.",
        )
        for event in pending:
            self.set_ready(event, error)
        return [event.number for event in pending]

    def _time_out(self) -> None:
        self._timeout = None
        self._end_wait([])

    def _end_wait(self, ready: list[int]) -> None:
        self._end_wait_with(self._then or (lambda: ready))

    def _end_wait_with(self, action: Callable[[], object]) -> None:
        self._waiting = self._then = None
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None
        self._complete(action)


def _needs_the_run(events: Sequence[Event]) -> bool:
    """Whether nothing but the run itself can make one of the events ready."""
    return all(event.status is EventStatus.SPENT or event.own_work for event in events)


def _raiser(error: DeadlockError) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail
