from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tartlet.errors import UnavailableError
from tartlet.events import RunUsage
from tartlet.server.front import metering
from tartlet.server.front.metering import meter
from tartlet.server.front.storage import open_storage


class Going:
    """Runs of which more has been used each time that somebody asks, but for one."""

    def __init__(self) -> None:
        self.times = 0

    def charge(self) -> dict[str, RunUsage]:
        self.times += 1
        return {"busy": RunUsage(generated_tokens=self.times), "idle": RunUsage(generated_tokens=1)}


async def test_what_runs_use_is_charged_and_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noted more rarely than charged, only what has changed, and again if the database could not be used."""
    monkeypatch.setattr(metering, "PERIODS_OF_A_NOTE", 3)
    going, noted = Going(), []
    async with open_storage(str(tmp_path / "db")) as storage:

        async def note(usages: Any) -> None:
            noted.append({run_id: usage.generated_tokens for run_id, usage in usages.items()})
            if len(noted) == 1:
                raise UnavailableError("locked")

        storage.runs.note_usages = note  # type: ignore[method-assign]
        task = asyncio.create_task(meter(going, storage, period_s=0.001))  # type: ignore[arg-type]
        while len(noted) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.wait([task])

    assert noted == [{"busy": 3, "idle": 1}, {"busy": 6, "idle": 1}, {"busy": 9}]
