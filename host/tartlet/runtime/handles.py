"""What a run holds: contexts, generations, models and events, by numbers that are unique over the run."""

from __future__ import annotations

import itertools
from typing import TypeVar

from tartlet.errors import InvalidHandleError, LimitExceededError

T = TypeVar("T")

_MAX_REP = 2**32


class HandleTable:
    """The objects that a run's program holds a number of, all kinds in one table.

    A number is never used twice, so that one which is forged, dropped or of another kind is always recognised.
    """

    def __init__(self, max_handles: int | None) -> None:
        self._max_handles = max_handles
        self._objects: dict[int, object] = {}
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, thing: object) -> int:
        """The number of a new handle. Raises LimitExceededError if the run holds as many as it may."""
        if self._max_handles is not None and len(self._objects) >= self._max_handles:
            raise LimitExceededError(
                "handle_limit",
                limit="max_handles",
                used=len(self._objects) + 1,
                allowed=self._max_handles,
                hint="Drop contexts, generations and events that are done with.",
            )
        number = next(self._numbers)
        if number >= _MAX_REP:
            raise LimitExceededError("handle_limit", limit="max_handles", used=number, allowed=_MAX_REP - 1)
        self._objects[number] = thing
        return number

    def get(self, number: int, kind: type[T]) -> T:
        """The object behind a number. Raises InvalidHandleError if the run holds none of that kind by it."""
        thing = self._objects.get(number)
        if type(thing) is not kind:
            raise InvalidHandleError(f"the run holds no {_name(kind)} by the number {number}")
        return thing

    def remove(self, number: int, kind: type[T]) -> T:
        """Take an object out. Raises InvalidHandleError if the run holds none of that kind by that number."""
        thing = self.get(number, kind)
        del self._objects[number]
        return thing

    def discard(self, number: int) -> None:
        """Take an object out, if it is still there."""
        self._objects.pop(number, None)

    def all(self, kind: type[T]) -> list[T]:
        """Everything of one kind. O(n)."""
        return [thing for thing in self._objects.values() if type(thing) is kind]

    def clear(self) -> None:
        """Let go of everything."""
        self._objects.clear()


def _name(kind: type) -> str:
    return kind.__name__.removesuffix("State").removesuffix("Handle").lower()
