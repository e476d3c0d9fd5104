"""One worker after another: each started, connected, watched, and lost with its runs."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from tartlet.errors import RunCancelledError, WorkerLostError
from tartlet.server.child_environment import worker_environment
from tartlet.server.engine.messages import RunTotals
from tartlet.server.front.processes.child import Child
from tartlet.server.front.processes.engine_child import EngineChild
from tartlet.server.front.processes.preparation import Preparation
from tartlet.server.front.processes.worker_link import WorkerLink
from tartlet.server.worker.connection import Connection
from tartlet.server.worker.messages import BEAT_S, MOST_BYTES, ToFront

_SLUGGISH_BEATS = 5
"""A worker that has missed as many gets no more runs."""

_STUCK_BEATS = 30
"""A worker that has missed as many is ended."""

_START_BEATS = 60
"""It may take as many more to start, on a machine that is busy."""

_PATIENCE_S = 5.0
_LAST_WORDS_S = 1.0  # to read what a worker that has ended sent before


class WorkerChild:
    """The place of one worker.

    Args:
        name: For the log.
        num_spares: Python runners that each keeps ready.
        engine: Whose engines it uses, one after the other.
        preparation: Of what it needs.
    """

    def __init__(self, name: str, num_spares: int, engine: EngineChild, preparation: Preparation) -> None:
        self.name = name
        self.pid: int | None = None
        self._num_spares = num_spares
        self._engine = engine
        self._preparation = preparation
        self._link: WorkerLink | None = None
        self._missed_beats = 0
        engine.tell(self._use_engine)

    @property
    def link(self) -> WorkerLink | None:
        """To the worker that is there, whatever its state."""
        return self._link

    @property
    def usable_link(self) -> WorkerLink | None:
        """To a worker that answers and is connected to the engine that there is now."""
        engine = self._engine.current
        if self._link is None or engine is None or self._missed_beats >= _SLUGGISH_BEATS:
            return None
        return self._link if self._link.engine == engine[0] else None

    async def live(self) -> str:
        """One life: start a worker, and use it until it ends. Gives how it ended.

        Raises BuildError if what it needs is not there and cannot be built.
        """
        await self._preparation.done()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                child = await Child.start(
                    self.name,
                    "tartlet.server.worker",
                    [f"--front={theirs.fileno()}", f"--spares={self._num_spares}"],
                    environment=worker_environment(os.environ),
                    inherited=[theirs.fileno()],
                )
            except BaseException:
                ours.close()
                raise
        try:
            self.pid = child.pid
            connection = await Connection.open(ours, ToFront, MOST_BYTES)
            try:
                await self._use(child, connection)
            finally:
                connection.close()
        finally:
            self.pid = None
            await child.stop(_PATIENCE_S)
        return f"was stuck and {child.end}" if self._is_stuck else child.end

    async def _use(self, child: Child, connection: Connection) -> None:
        """Use a worker, until it ends, closes the connection, or is stuck."""
        link = WorkerLink(connection, self._engine.key)
        self._link, self._missed_beats = link, -_START_BEATS
        if (engine := self._engine.current) is not None:
            link.use_engine(*engine)
        ends = [
            asyncio.create_task(connection.serve(link.handle)),
            asyncio.create_task(child.wait()),
            asyncio.create_task(self._watch(link)),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(ends[:1], timeout=_LAST_WORDS_S if ends[1].done() else 0)
        except asyncio.CancelledError:
            link.lose(RunCancelledError("the server is closing"))
            raise
        finally:
            self._link = None
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
            if self._is_stuck:
                child.kill()  # so that the engine hears that its runs are lost
            await self._lose(link)

    async def _lose(self, link: WorkerLink) -> None:
        """End the runs of a worker that is gone, with what they had used."""
        hint = "Start it again: another process takes the place of this one."
        totals: dict[str, RunTotals] = {}
        try:
            totals = await self._engine.totals(link.run_ids)
        finally:
            link.lose(WorkerLostError("the process that ran the program is gone", hint=hint), totals)

    def _use_engine(self, engine: int, path: Path) -> None:
        if self._link is not None:
            self._link.use_engine(engine, path)

    async def _watch(self, link: WorkerLink) -> None:
        """Count beats that do not come, by our own: if this process stands still, that is not the worker's fault."""
        while not self._is_stuck:
            await asyncio.sleep(BEAT_S)
            self._missed_beats = 0 if link.has_spoken else self._missed_beats + 1
            link.has_spoken = False

    @property
    def _is_stuck(self) -> bool:
        return self._missed_beats >= _STUCK_BEATS
