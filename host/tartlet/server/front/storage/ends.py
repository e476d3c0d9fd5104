"""Ends of runs that could not be written down: they are kept until the database can be used again."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from tartlet.errors import UnavailableError
from tartlet.events import RunUsage
from tartlet.server.failures import Failure
from tartlet.server.front.storage.runs import EndedRun, Runs, State

RETRY_S = 2.0
"""After how long it is tried again."""
MOST_UNWRITTEN = 1000
"""Ends that are kept. More are lost, but for a line in the log; then the next start gives these runs an end."""

_log = logging.getLogger("tartlet.server.storage")


class Ends:
    """Writes ends of runs, sooner or later. All methods are called on one event loop."""

    def __init__(self, runs: Runs, retry_s: float = RETRY_S) -> None:
        self._runs = runs
        self._retry_s = retry_s
        self._unwritten: deque[EndedRun] = deque()
        self._retrying: asyncio.Task[None] | None = None

    @property
    def num_unwritten(self) -> int:
        """Ends that wait for the database."""
        return len(self._unwritten)

    async def write(
        self,
        run_id: str,
        state: State,
        *,
        usage: RunUsage,
        result_json: str | None = None,
        failure: Failure | None = None,
        frees_key: bool = False,
    ) -> bool:
        """Write down how a run ended, as `Runs.end`; if the database cannot be used now, as soon as it can.

        Returns: Whether it is on disk.
        """
        ended = self._runs.ended(
            run_id, state, usage=usage, result_json=result_json, failure=failure, frees_key=frees_key
        )
        if await self._try(ended):
            return True
        if len(self._unwritten) >= MOST_UNWRITTEN:
            _log.error("the end of the run %s is lost: too many wait for the database", run_id)
            return False
        self._unwritten.append(ended)
        if self._retrying is None:
            self._retrying = asyncio.create_task(self._retry())
        return False

    async def close(self) -> None:
        """Try what is unwritten once more."""
        if self._retrying is not None:
            self._retrying.cancel()
            await asyncio.wait([self._retrying])
        await self._write_kept()
        for ended in self._unwritten:
            _log.error("the end of the run %s is lost: the database cannot be used", ended.run_id)

    async def _retry(self) -> None:
        while self._unwritten:
            await asyncio.sleep(self._retry_s)
            await self._write_kept()
        self._retrying = None

    async def _write_kept(self) -> None:
        """Write what is kept, the oldest first, until one fails."""
        while self._unwritten and await self._try(self._unwritten[0]):
            self._unwritten.popleft()

    async def _try(self, ended: EndedRun) -> bool:
        try:
            await self._runs.write_end(ended)
        except UnavailableError:
            return False
        return True
