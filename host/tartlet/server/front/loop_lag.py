"""How late the event loop is: what holds it up holds up every client."""

from __future__ import annotations

import asyncio

PERIOD_S = 0.25


class LoopLag:
    """The longest delay of a timer since it was asked for last. Measured as long as `measure` runs."""

    def __init__(self) -> None:
        self._max_s = 0.0

    async def measure(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PERIOD_S
            await asyncio.sleep(PERIOD_S)
            self.note(loop.time() - due)

    def note(self, seconds: float) -> None:
        """Note a delay."""
        self._max_s = max(self._max_s, seconds)

    def take_max(self) -> float:
        """The longest, in seconds; then it begins anew."""
        longest, self._max_s = self._max_s, 0.0
        return longest
