"""The variables of a run: texts by name, with versions, which everything in the run shares and can wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

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


class Waiter(Protocol):
    """A program of the run that may wait for variables."""

    @property
    def events(self) -> EventTable:
        """Its events."""
        ...

    def wake(self) -> None:
        """Take in that some of them have become ready. No effect on the one that runs."""
        ...


class _Wait(NamedTuple):
    above: int  # the version
    waiter: Waiter


class Variables:
    """The variables of one run. Lives on the executor's thread.

    Args:
        limits: How many variables there may be, and how large all of them.
        tell: Told of every write before it takes effect, with the bytes of name and value.
    """

    def __init__(self, limits: Limits, tell: Callable[[Variable, int], None]) -> None:
        self.num_bytes = 0  # UTF-8, of names and values
        self._limits = limits
        self._tell = tell
        self._held: dict[str, Versioned] = {}
        self._sizes: dict[str, int] = {}  # bytes of name and value
        self._waits: dict[str, dict[Event, _Wait]] = {}  # by name

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

    def wait_above(self, waiter: Waiter, name: str, version: int) -> Event:
        """A new event of `waiter` that becomes ready once the variable's version is above that. Raises a refusal."""
        _size(name)
        event = waiter.events.add(own_work=f"a change of the variable {name!r}")
        if self._held.get(name, NOTHING).version > version:
            waiter.events.set_ready(event)
        else:
            self._waits.setdefault(name, {})[event] = _Wait(version, waiter)
            event.on_drop = lambda: self._forget(name, event)
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
        if name in self._waits:
            self._end_waits(name, version)
        return version

    def _end_waits(self, name: str, version: int) -> None:
        woken: dict[Waiter, None] = {}
        for event, wait in list(self._waits[name].items()):
            if version > wait.above:
                self._forget(name, event)
                wait.waiter.events.set_ready(event)
                woken[wait.waiter] = None
        for waiter in woken:
            waiter.wake()

    def _forget(self, name: str, event: Event) -> None:
        """End a wait, if it still is one."""
        waits = self._waits.get(name, {})
        waits.pop(event, None)
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
