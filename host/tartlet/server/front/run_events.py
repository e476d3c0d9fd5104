"""A run's events as they are kept for readers, and as clients get them."""

from __future__ import annotations

from collections import deque
from typing import Any, Literal, TypeAlias

import msgspec

from tartlet.errors import TartletError
from tartlet.events import Log, Output, RunEvent, RunUsage, Variable
from tartlet.server.failures import Failure, to_error
from tartlet.server.front.errors import error_fields
from tartlet.server.raw_json import RawJson

EVENT_BYTES = 100
"""What an event takes beside its text, about."""

RunStatus: TypeAlias = Literal["running", "succeeded", "failed", "cancelled"]


class Outcome(msgspec.Struct, frozen=True):
    """How a run has ended."""

    status: RunStatus
    result_json: str | None = None
    """As `raw_json.checked_json` gives it."""
    failure: Failure | None = None

    def raise_failure(self) -> None:
        """Raise the error that the run ended with, if it did."""
        error = self.error()
        if error is not None:
            raise error

    def error(self) -> TartletError | None:
        """The error that the run ended with; None if it succeeded."""
        return None if self.failure is None else to_error(self.failure)


class Numbered(msgspec.Struct, frozen=True):
    """An event, and which of its run it is, from 1."""

    number: int
    event: RunEvent


class Dropped(msgspec.Struct, frozen=True):
    """Events that a reader cannot have any more: too much came after them."""

    first: int
    last: int


class EventBuffer:
    """The last events of a run, as many as fit in `max_bytes`, for readers that come late or are slow."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.num_bytes = 0
        """What the kept events take, about."""
        self._events: deque[Numbered] = deque()
        self.last = 0
        """The number of the newest event; 0: there was none."""

    def append(self, event: RunEvent) -> None:
        """Add the next event. The oldest go if they take too much; the newest stays in any case."""
        self.last += 1
        self._events.append(Numbered(self.last, event))
        self.num_bytes += _size(event)
        while self.num_bytes > self._max_bytes and len(self._events) > 1:
            self.num_bytes -= _size(self._events.popleft().event)

    def after(self, number: int) -> Numbered | Dropped | None:
        """What comes after the event of this number; None: nothing yet."""
        if number >= self.last:
            return None
        first = self._events[0].number
        if number + 1 < first:
            return Dropped(number + 1, first - 1)
        return self._events[number + 1 - first]


def event_fields(event: RunEvent) -> dict[str, Any]:
    """An event as JSON: its `type`, and what belongs to it."""
    match event:
        case Output(text=text):
            return {"type": "output", "text": text}
        case Log(level=level, message=message):
            return {"type": "log", "level": level, "message": message}
        case Variable(name=name, value=value, version=version):
            return {"type": "variable", "name": name, "value": value, "version": version}
        case RunUsage():
            return {"type": "usage", "usage": usage_fields(event)}


def read_fields(read: Numbered | Dropped) -> dict[str, Any]:
    """What a reader gets, as JSON; `seq` is where to go on after it."""
    if isinstance(read, Dropped):
        return {"type": "dropped", "seq": read.last, "first": read.first, "last": read.last}
    return {**event_fields(read.event), "seq": read.number}


def usage_fields(usage: RunUsage) -> dict[str, Any]:
    """The figures of a run as JSON."""
    fields: dict[str, Any] = msgspec.to_builtins(usage)
    return fields


def outcome_fields(outcome: Outcome | None) -> dict[str, Any]:
    """How a run has ended, as JSON: `status`, and `result` (as `RawJson`) or `error`."""
    if outcome is None:
        return {"status": "running", "result": None, "error": None}
    error = outcome.error()
    return {
        "status": outcome.status,
        "result": None if outcome.result_json is None else RawJson(outcome.result_json),
        "error": None if error is None else error_fields(error),
    }


def _size(event: RunEvent) -> int:
    match event:
        case Output(text=text):
            return EVENT_BYTES + len(text)
        case Log(message=message):
            return EVENT_BYTES + len(message)
        case Variable(name=name, value=value):
            return EVENT_BYTES + len(name) + len(value)
        case RunUsage():
            return EVENT_BYTES
