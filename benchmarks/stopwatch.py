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
