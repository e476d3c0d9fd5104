"""Measures how long all calls of a method take together."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stopwatch:
    """Seconds spent so far."""

    def __init__(self) -> None:
        self.seconds = 0.0


@contextmanager
def stopwatch(owner: type, method: str) -> Iterator[Stopwatch]:
    """Measure all calls of `owner`'s method, of all instances, while the block lasts. For calls on one thread."""
    original = getattr(owner, method)
    watch = Stopwatch()

    @functools.wraps(original)
    def measured(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            watch.seconds += time.perf_counter() - began

    setattr(owner, method, measured)
    try:
        yield watch
    finally:
        setattr(owner, method, original)


class Gaps:
    """The time between calls: from the end of each to the beginning of the next, in seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._ended: float | None = None

    def take(self) -> list[float]:
        """What there was since this was called last."""
        seconds, self.seconds, self._ended = self.seconds, [], None
        return seconds


@contextmanager
def gaps_between(owner: type, method: str) -> Iterator[Gaps]:
    """Measure the time between calls of `owner`'s method, of all instances. For calls on one thread."""
    original = getattr(owner, method)
    gaps = Gaps()

    @functools.wraps(original)
    def measured(*args: Any, **kwargs: Any) -> Any:
        if gaps._ended is not None:
            gaps.seconds.append(time.perf_counter() - gaps._ended)
        try:
            return original(*args, **kwargs)
        finally:
            gaps._ended = time.perf_counter()

    setattr(owner, method, measured)
    try:
        yield gaps
    finally:
        setattr(owner, method, original)
