from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tartlet.errors import LimitExceededError, UnavailableError, WorkerLostError
from tartlet.events import Output, RunUsage
from tartlet.server.requests import ProgramRef, RunRequest
from tartlet.server.worker.messages import Beat, Described, Ended, Printed

REQUEST = RunRequest("run_1", "acme", ProgramRef("d", "/nowhere", "source", "n"), "null", {"max_output_bytes": 8})


async def test_what_is_over_is_not_heard(link: Any) -> None:
    """A worker may still speak of it."""
    run = link.start(REQUEST)
    link.handle(Ended(1, RunUsage(), "[1]"))
    for message in (Ended(1, RunUsage(), "[2]"), Printed(1, "late"), Beat([(1, RunUsage())]), Described(5, None)):
        link.handle(message)

    assert json.loads(await run.result_json()) == [1]
    assert [await run.next_event(), await run.next_event()] == [RunUsage(), None]
    assert link.num_runs == 0


async def test_a_lost_worker_costs_its_runs(link: Any) -> None:
    """What has been heard stays: text, and what they had used."""
    run = link.start(REQUEST)
    link.handle(Printed(1, "text"))
    link.handle(Beat([(1, RunUsage(host_calls=5))]))
    link.lose(WorkerLostError("the process is gone"))

    assert [await run.next_event() for _ in range(3)] == [Output("text"), RunUsage(host_calls=5), None]
    with pytest.raises(WorkerLostError, match="is gone"):
        await run.result_json()
    assert link.num_runs == 0


async def test_who_waits_for_an_answer_of_a_lost_worker_may_ask_again(link: Any) -> None:
    """Nothing has been done."""
    asking = asyncio.create_task(link.describe(REQUEST.program))
    await asyncio.sleep(0)
    link.lose(WorkerLostError("the process is gone"))
    with pytest.raises(UnavailableError):
        await asking


async def test_a_worker_that_sends_too_much_is_not_believed(link: Any) -> None:
    """The run ends, as it should have there."""
    run = link.start(REQUEST)
    link.handle(Printed(1, "123456789"))
    link.handle(Printed(1, "more"))

    with pytest.raises(LimitExceededError):
        await run.result_json()
    assert [await run.next_event(), await run.next_event()] == [RunUsage(), None]
