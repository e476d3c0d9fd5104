"""What is deleted from the storage as time goes by."""

from __future__ import annotations

import asyncio
import logging

from tartlet.errors import UnavailableError
from tartlet.server.front.storage import Storage

PERIOD_S = 3600.0
_DAY_MS = 86_400_000

logger = logging.getLogger("tartlet.server")


async def keep_house(storage: Storage, keep_runs_days: int, *, period_s: float = PERIOD_S) -> None:
    """Forget runs that ended long ago, and idempotency keys that have expired, again and again, until cancelled."""
    while True:
        try:
            num_runs = await storage.runs.forget(storage.runs.now_ms() - keep_runs_days * _DAY_MS)
            num_keys = await storage.idempotency.sweep()
        except UnavailableError:
            pass  # the storage has logged it; next time
        else:
            if num_runs or num_keys:
                logger.info("forgotten", extra={"runs": num_runs, "idempotency_keys": num_keys})
        await asyncio.sleep(period_s)
