"""Whoever runs programs for the front: in the same process, or in workers of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tartlet.events import RunEvent, RunUsage
from tartlet.server.requests import RunRequest
from tartlet_engine.api import EngineStats, ModelInfo


class RunHandle(Protocol):
    """A run that goes on elsewhere. It must be read to its end or given up: its events are kept until then."""

    @property
    def run_id(self) -> str:
        """As in the request."""
        ...

    @property
    def usage(self) -> RunUsage:
        """What it has used, as far as that is known now."""
        ...

    async def next_event(self) -> RunEvent | None:
        """Wait for the next event; None after the last, which is the `RunUsage`. Cancelling this wait loses no event.

        Of a run whose worker has died, the usage is what was last heard of.
        """
        ...

    async def result_json(self) -> str:
        """Wait for the run's end, and give what the program returned, as JSON text.

        Raises: what `tartlet.Run.result` raises; `WorkerLostError` if the process that ran it is gone.
        """
        ...

    def cancel(self) -> None:
        """End the run soon. Returns at once; no effect if it has ended."""
        ...


class Sandboxes(Protocol):
    """Runs programs. All methods are called on the front's event loop."""

    @property
    def models(self) -> Sequence[ModelInfo]:
        """The facts of the models that programs find, the default first; empty before the engine is there."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether runs can be started: there is a worker, and an engine that makes progress or has nothing to do."""
        ...

    async def started(self) -> None:
        """Wait until there is an engine, with its model.

        Raises ConfigError if there cannot be one with these settings. It may be tried again all the same: a server that
        has just been started should end, one that has been running need not.
        """
        ...

    async def start(self, request: RunRequest) -> RunHandle:
        """Start a run. What is wrong with the program itself comes out as the run's result.

        Raises: `UnavailableError` if there is nobody to run it.
        """
        ...

    async def engine_stats(self) -> EngineStats | None:
        """The engine's counters; None while there is no engine."""
        ...

    async def close(self) -> None:
        """End all runs, and everything that was started for them."""
        ...
