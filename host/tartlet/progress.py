"""How long pieces of set-up work (fetching, converting, building, compiling) tell how far they are."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Hears of set-up work. Called on the thread that does the work; must return at once."""

    def __call__(self, task: str, done: float, total: float | None) -> None:
        """Note that `done` of `total` is done; the task has ended when the two are equal.

        Args:
            task: what is being done, for people; the same text at every call for one task.
            done: in whatever unit the task counts, from 0.
            total: in the same unit; None if it cannot be known.
        """
        ...


def silent(task: str, done: float, total: float | None) -> None:
    """Ignore all progress."""
