"""Commands that have been submitted and not carried out yet: a queue for each run, and one for what concerns no run.

A program can submit more than the engine can do. So runs take turns, a command at a time (`fair_queue.py`): how long a
command waits does not depend on how many others have submitted, only on how many submit. Pure Python.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from tartlet_engine.api import CloseRun, Command, OpenRun
from tartlet_engine.fair_queue import FairQueue


class Arrival(NamedTuple):
    """A command that was submitted."""

    command: Command
    arrived_ns: int  # monotonic
    tenant: str | None  # for whom it is carried out; None: for nobody in particular


class Inbox:
    """Commands in the order in which they are to be carried out. Not thread-safe."""

    def __init__(self) -> None:
        """Start empty."""
        self._first: deque[Arrival] = deque()  # of no run
        self._queue: FairQueue[Arrival] = FairQueue()
        self._tenants: dict[int, str] = {}  # of runs that have been opened here, until they are closed

    def __len__(self) -> int:
        """Commands that wait."""
        return len(self._first) + len(self._queue)

    @property
    def num_tenants(self) -> int:
        """Tenants whose commands wait."""
        return self._queue.num_tenants

    def add(self, commands: Sequence[Command], run_id: int | None, arrived_ns: int) -> None:
        """Queue commands of one run, in order; None: of no run in particular, which come before those of all runs."""
        if run_id is None:
            self._first.extend(Arrival(command, arrived_ns, None) for command in commands)
            return
        for command in commands:
            if isinstance(command, OpenRun):
                self._tenants.setdefault(run_id, command.tenant)
            tenant = self._tenants.get(run_id, "")
            if isinstance(command, CloseRun):
                # What it has asked for and not got is of no use to anybody any more.
                self._queue.drop(tenant, run_id)
                self._tenants.pop(run_id, None)
            self._queue.add(tenant, run_id, Arrival(command, arrived_ns, tenant))

    def put_back(self, arrival: Arrival, run_id: int) -> None:
        """Queue a command again that has been taken and is not done: it comes first when its run's turn comes again."""
        if arrival.tenant is None:
            self._first.appendleft(arrival)
        else:
            self._queue.put_back(arrival.tenant, run_id, arrival)

    def take(self) -> Arrival:
        """Take out the command that comes next. Raises IndexError if there is none."""
        return self._first.popleft() if self._first else self._queue.take()
