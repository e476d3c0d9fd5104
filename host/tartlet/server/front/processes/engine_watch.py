"""Whether an engine goes on: what readiness follows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tartlet.errors import EngineStoppedError
from tartlet.server.engine.messages import RunTotals
from tartlet.server.engine.probe import EngineProbe
from tartlet_engine.api import EngineStats

_BEAT_S = 0.5

_SLOW_BEATS = 10
"""A ping that has waited for so many is not answered: longer than a step of a big batch takes on a slow machine."""

_STUCK_BEATS = 240
"""A ping that has waited for so many never will be."""

_STATS_PATIENCE_S = 1.0

_TOTALS_PATIENCE_S = 0.5
"""For so long the ends of runs wait whose worker is lost."""
_TOTALS_PAUSE_S = 0.02


class EngineWatch:
    """Asks the engine's own thread, again and again, whether it goes on.

    It counts in beats of its own: if this process stands still, too, that is not the engine's fault.
    """

    def __init__(self, probe: EngineProbe) -> None:
        self._probe = probe
        self._missed_beats = 0
        self._stats: EngineStats | None = None  # the last ones known

    @property
    def makes_progress(self) -> bool:
        """Whether it has answered lately."""
        return self._missed_beats < _SLOW_BEATS

    @property
    def is_stuck(self) -> bool:
        """Whether it has not answered for so long that it never will."""
        return self._missed_beats >= _STUCK_BEATS

    async def watch(self) -> None:
        """Watch until the engine is gone or stuck."""
        ping = asyncio.create_task(self._probe.ping())
        lost = asyncio.create_task(self._probe.wait_lost())
        try:
            while not self.is_stuck and not lost.done():
                if ping.done():
                    self._missed_beats = 0
                    _forget_error(ping)
                    ping = asyncio.create_task(self._probe.ping())
                else:
                    self._missed_beats += 1
                await asyncio.wait([lost], timeout=_BEAT_S)
        finally:
            for task in (ping, lost):
                task.cancel()
            await asyncio.gather(ping, lost, return_exceptions=True)

    async def stats(self) -> EngineStats | None:
        """The counters; if the engine does not answer soon, those known last."""
        try:
            async with asyncio.timeout(_STATS_PATIENCE_S):
                self._stats = await self._probe.stats()
        except (TimeoutError, EngineStoppedError):
            pass
        return self._stats

    async def totals(self, names: Sequence[str]) -> dict[str, RunTotals]:
        """What lost runs had used, as far as the engine knows that soon: it closes them when it sees that they are."""
        totals: dict[str, RunTotals] = {}
        try:
            async with asyncio.timeout(_TOTALS_PATIENCE_S):
                while missing := [name for name in names if name not in totals]:
                    totals |= await self._probe.totals(missing)
                    await asyncio.sleep(_TOTALS_PAUSE_S)
        except (TimeoutError, EngineStoppedError):
            pass
        return totals


def _forget_error(ping: asyncio.Task[None]) -> None:
    """That the engine is gone, `wait_lost` tells."""
    if not ping.cancelled():
        ping.exception()
