"""What runs use is counted while they go: for their tenants' rates, and for the case that this process dies."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping

from tartlet.errors import UnavailableError
from tartlet.events import RunUsage
from tartlet.server.front.runs import RunRegistry
from tartlet.server.front.storage import Storage

PERIOD_S = 1.0
PERIODS_OF_A_NOTE = 10
"""What runs have used is noted in the database every so many periods, without waiting for the disk."""


async def meter(runs: RunRegistry, storage: Storage, *, period_s: float = PERIOD_S) -> None:
    """Charge tenants for what their runs have used since the last time, again and again, until cancelled."""
    noted: Mapping[str, RunUsage] = {}
    for number in itertools.count(1):
        await asyncio.sleep(period_s)
        usages = runs.charge()
        if number % PERIODS_OF_A_NOTE == 0:
            changed = {run_id: usage for run_id, usage in usages.items() if noted.get(run_id) != usage}
            noted = usages if await _note(storage, changed) else {}


async def _note(storage: Storage, usages: Mapping[str, RunUsage]) -> bool:
    if usages:
        try:
            await storage.runs.note_usages(usages)
        except UnavailableError:
            return False  # the storage has logged it; next time
    return True
