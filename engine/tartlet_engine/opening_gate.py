"""How many saved contexts a run may have in memory on their way into the KV cache. Pure Python.

They are read faster than they are written into pages, and a program can open the same one thousands of times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tartlet_engine.accounts import RunAccount
from tartlet_engine.sequence import Sequence

MAX_UNDER_WAY = 2
"""Of one run. While one is written the next is read."""


class _Waiting(NamedTuple):
    sequence: Sequence
    begin: Callable[[], bool]


@dataclass(slots=True)
class _Openings:
    num_under_way: int = 0
    waiting: deque[_Waiting] = field(default_factory=deque)


class OpeningGate:
    """Openings by run: those under way, and those that wait for them. Not thread-safe."""

    def __init__(self) -> None:
        """Start with none."""
        self._runs: dict[RunAccount, _Openings] = {}

    @property
    def waiting(self) -> list[Sequence]:
        """The contexts whose opening has not begun."""
        return [each.sequence for run in self._runs.values() for each in run.waiting]

    def enter(self, sequence: Sequence, begin: Callable[[], bool]) -> None:
        """Begin to open a context, now or when others of its run are done. `begin` tells whether there was need to."""
        run = self._runs.setdefault(sequence.account, _Openings())
        run.waiting.append(_Waiting(sequence, begin))
        self._go_on(sequence.account, run)

    def leave(self, account: RunAccount) -> None:
        """Take note that what was opened for the run is in memory no more: the next one may begin."""
        run = self._runs[account]
        run.num_under_way -= 1
        self._go_on(account, run)

    def _go_on(self, account: RunAccount, run: _Openings) -> None:
        while run.waiting and run.num_under_way < MAX_UNDER_WAY:
            run.num_under_way += run.waiting.popleft().begin()
        if not run.waiting and not run.num_under_way:
            self._runs.pop(account, None)
