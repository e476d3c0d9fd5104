"""The front's end of the connection to a worker: what the worker is asked for, and what it answers."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tartlet.errors import ConfigError, LimitExceededError, RunError, WireError
from tartlet.events import RunUsage
from tartlet.runtime.channel import LoopWaker
from tartlet.server.engine.grants import make_grant
from tartlet.server.engine.messages import RunTotals
from tartlet.server.failures import to_error
from tartlet.server.front.processes.remote_run import EventMessage, RemoteRun
from tartlet.server.requests import RunRequest
from tartlet.server.worker.connection import Connection
from tartlet.server.worker.messages import (
    Attached,
    Beat,
    Cancel,
    Ended,
    Logged,
    Printed,
    Start,
    ToFront,
    UseEngine,
    Written,
)

logger = logging.getLogger(__name__)

NO_TOTALS: Mapping[str, RunTotals] = MappingProxyType({})

_NO_FIGURE = 1 << 53
"""What a run has used is less, in whatever unit."""


class WorkerLink:
    """The runs of one worker. `handle` is called with each of its messages; `lose` when there will be no more.

    Args:
        connection: To the worker.
        key: Of grants, which the worker gets with each run to show to the engine.
    """

    def __init__(self, connection: Connection, key: bytes = b"") -> None:
        self.engine: int | None = None
        """The number of the engine on which it can run programs."""
        self.has_spoken = False
        """Set by whatever it says; who watches it clears it."""
        self._connection = connection
        self._key = key
        self._waker = LoopWaker(asyncio.get_running_loop())
        self._numbers = itertools.count(1)
        self._runs: dict[int, RemoteRun] = {}

    @property
    def num_runs(self) -> int:
        """Those that have not ended."""
        return len(self._runs)

    def use_engine(self, engine: int, path: Path) -> None:
        """Tell the worker of an engine."""
        self._connection.send(UseEngine(engine, str(path)))

    def start(self, request: RunRequest) -> RemoteRun:
        """Start a run. Raises ConfigError if it is too large to be asked for."""
        number = next(self._numbers)
        run = RemoteRun(request, self._waker, lambda: self._connection.send(Cancel(number)))
        try:
            grant = make_grant(self._key, request.tenant, request.weight)
            self._connection.send(Start(number, request, grant))
        except WireError as error:
            raise ConfigError(f"the run cannot be asked for: {error.message}", hint="Give it less input.") from None
        self._runs[number] = run
        return run

    @property
    def run_ids(self) -> list[str]:
        """Of those that have not ended."""
        return [run.run_id for run in self._runs.values()]

    def lose(self, error: RunError, totals: Mapping[str, RunTotals] = NO_TOTALS) -> None:
        """End everything: the worker is gone. Its runs end with that error.

        Args:
            error: Why.
            totals: What runs had used of the engine, by their ids, as far as the engine has told.
        """
        self.engine = None
        runs, self._runs = self._runs, {}
        for run in runs.values():
            run.end(run.usage_when_lost(totals.get(run.run_id)), error)

    # ---- What the worker says ----

    def handle(self, message: ToFront) -> None:
        """Take in a message. Of runs that are over, nothing is expected any more.

        Raises ValueError for what no worker that is well would say.
        """
        self.has_spoken = True
        match message:
            case Printed(number) | Logged(number) | Written(number):
                run = self._runs.get(number)
                if run is not None:
                    self._take_event(number, run, message)
            case Ended(number, usage, outcome):
                _check(usage)
                if (run := self._runs.pop(number, None)) is not None:
                    run.end(usage, outcome if isinstance(outcome, str) else to_error(outcome))
            case Beat(usages):
                for number, usage in usages:
                    _check(usage)
                    if (run := self._runs.get(number)) is not None:
                        run.usage = usage
            case Attached(engine):
                self.engine = engine

    def _take_event(self, number: int, run: RemoteRun, message: EventMessage) -> None:
        try:
            run.take(message)
        except LimitExceededError as error:
            logger.error("a worker sends more than a run may write: %s", error.message)
            del self._runs[number]
            run.end(run.usage, error)
            self._connection.send(Cancel(number))


def _check(usage: RunUsage) -> None:
    """Raise ValueError for figures that no run can have: the worker is not what it was, and bills are made of them."""
    for figure in dataclasses.astuple(usage):
        if figure is not None and not 0 <= figure < _NO_FIGURE:
            raise ValueError(f"a worker says that a run has used {figure}")
