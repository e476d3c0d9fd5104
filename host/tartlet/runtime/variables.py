"""The variables of a run: texts by name, with versions, which everything in the run shares and can wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tartlet.events import Variable
from tartlet.limits import Limits
from tartlet.runtime.event_table import Event, EventTable
from tartlet.runtime.refusal import invalid_argument, refusal
from tartlet_engine.api import ErrorCode

MAX_NAME_BYTES = 256


class Versioned(NamedTuple):
    """What a variable holds."""

    version: int
    value: str


NOTHING = Versioned(0, "")
"""What a variable that does not exist holds."""


class Swap(NamedTuple):
    """What became of a compare-and-swap: whether it was written, and what the variable holds now."""

    is_written: bool
    now: Versioned


class Variables:
    """The variables of one run. Lives on the executor's thread.

    Args:
        events: Where waits are made.
        limits: How many variables there may be, and how large all of them.
        tell: Told of every write before it takes effect, with the bytes of name and value.
    """

    def __init__(self, events: EventTable, limits: Limits, tell: Callable[[Variable, int], None]) -> None:
        self.num_bytes = 0  # UTF-8, of names and values
        self._events = events
        self._limits = limits
        self._tell = tell
        self._held: dict[str, Versioned] = {}
        self._sizes: dict[str, int] = {}  # bytes of name and value
        self._waits: dict[str, dict[int, tuple[int, Event]]] = {}  # by name, by event: the version to rise above

    def __len__(self) -> int:
        return len(self._held)

    def get(self, name: str) -> Versioned | None:
        """The variable, if there is one."""
        return self._held.get(name)

    def versions(self) -> list[tuple[str, int]]:
        """Name and version of each, in the order in which they were first written."""
        return [(name, held.version) for name, held in self._held.items()]

    def set(self, name: str, value: str) -> int:
        """Write a variable; its new version. Raises a refusal, or LimitExceededError for too much output."""
        return self._write(name, value, _size(name) + len(value.encode()))

    def append(self, name: str, value: str) -> int:
        """Add to the end of a variable, as `set`."""
        size = self._sizes.get(name) or _size(name)
        old = self._held.get(name, NOTHING).value
        return self._write(name, old + value, size + len(value.encode()))

    def compare_and_swap(self, name: str, value: str, version: int) -> Swap:
        """Write a variable as `set`, if it still has that version."""
        found = self._held.get(name, NOTHING)
        if found.version != version:
            _size(name)
            return Swap(False, found)
        self.set(name, value)
        return Swap(True, self._held[name])

    def wait_above(self, name: str, version: int) -> Event:
        """A new event that becomes ready once the variable's version is above `version`. Raises a refusal."""
        _size(name)
        event = self._events.add(own_work=f"a change of the variable {name!r}")
        if self._held.get(name, NOTHING).version > version:
            self._events.set_ready(event)
        else:
            self._waits.setdefault(name, {})[event.number] = version, event
            event.on_drop = lambda: self._forget(name, event.number)
        return event

    def clear(self) -> None:
        """Let go of everything."""
        self._held.clear()
        self._sizes.clear()
        self._waits.clear()

    def _write(self, name: str, value: str, size: int) -> int:
        version = self._held.get(name, NOTHING).version + 1
        num_bytes = self.num_bytes - self._sizes.get(name, 0) + size
        limits = self._limits
        if version == 1:
            _check("max_variables", len(self._held) + 1, limits.max_variables)
        _check("max_variable_bytes", num_bytes, limits.max_variable_bytes)
        self._tell(Variable(name, value, version), size)
        self._held[name], self._sizes[name], self.num_bytes = Versioned(version, value), size, num_bytes
        for above, event in list(self._waits.get(name, {}).values()):
            if version > above:
                self._forget(name, event.number)
                self._events.set_ready(event)
        return version

    def _forget(self, name: str, event_number: int) -> None:
        """End a wait, if it still is one."""
        waits = self._waits.get(name, {})
        waits.pop(event_number, None)
        if not waits:
            self._waits.pop(name, None)


def _size(name: str) -> int:
    """UTF-8 bytes of a name. Raises a refusal if it is none that a variable may have."""
    size = len(name.encode())
    if not 1 <= size <= MAX_NAME_BYTES:
        raise invalid_argument(f"the name of a variable has 1 to {MAX_NAME_BYTES} bytes, not {size:,}")
    return size


def _check(limit: str, used: int, allowed: int | None) -> None:
    if allowed is not None and used > allowed:
        raise refusal(ErrorCode.QUOTA_EXCEEDED, f"{limit} allows {allowed:,}, this would make it {used:,}")
