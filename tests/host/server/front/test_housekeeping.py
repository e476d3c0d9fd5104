from __future__ import annotations

import asyncio
from pathlib import Path

from tartlet.errors import UnavailableError
from tartlet.events import RunUsage
from tartlet.server.front.housekeeping import keep_house
from tartlet.server.front.storage import Claim, open_storage


async def test_what_is_old_is_forgotten(tmp_path: Path) -> None:
    """Runs after so many days, idempotency keys after one; a database that cannot be used is tried again."""
    now = 1_800_000_000.0
    async with open_storage(str(tmp_path / "db"), clock=lambda: now) as storage:
        for run_id in ("old", "new"):
            await storage.runs.start(run_id, "default", "d" * 64, "hello", claim=Claim(run_id, "h"))
            await storage.runs.end(run_id, "succeeded", usage=RunUsage())
            now += 2 * 86_400
        forget, tries = storage.runs.forget, 0

        async def forget_at_last(before_ms: int) -> int:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise UnavailableError("locked")
            return await forget(before_ms)

        storage.runs.forget = forget_at_last  # type: ignore[method-assign]
        task = asyncio.create_task(keep_house(storage, 3, period_s=0.01))
        while tries < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

        assert [run.run_id for run in await storage.runs.list("default")] == ["new"]
        assert await storage.idempotency.sweep() == 0
