from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from typing import Any, get_args

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from tartlet.errors import LimitExceededError, TartletError, WorkerLostError
from tartlet.events import Output, RunUsage
from tartlet.server.engine.messages import RunTotals
from tartlet.server.front.processes.worker_link import WorkerLink
from tartlet.server.requests import ProgramRef, RunRequest
from tartlet.server.worker.connection import Connection
from tartlet.server.worker.messages import MOST_BYTES, Beat, Ended, Printed, ToFront

REQUEST = RunRequest("run_1", "acme", ProgramRef("d", "/nowhere", "source", "n"), "null", {"max_output_bytes": 8})


async def test_what_is_over_is_not_heard(link: Any) -> None:
    """A worker may still speak of it."""
    run = link.start(REQUEST)
    link.handle(Ended(1, RunUsage(), "[1]"))
    for message in (Ended(1, RunUsage(), "[2]"), Printed(1, "late"), Beat([(1, RunUsage())])):
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

    text, usage, end = [await run.next_event() for _ in range(3)]
    assert (text, end) == (Output("text"), None)
    assert usage.host_calls == 5
    assert usage.wall_ms > 0
    with pytest.raises(WorkerLostError, match="is gone"):
        await run.result_json()
    assert link.num_runs == 0


async def test_what_the_engine_knows_of_a_lost_run_counts(link: Any) -> None:
    """If it is more than the worker told last."""
    run, other = link.start(REQUEST), link.start(msgspec.structs.replace(REQUEST, run_id="run_2"))
    assert link.run_ids == ["run_1", "run_2"]
    link.handle(Beat([(1, RunUsage(prompt_tokens=9, generated_tokens=3, page_seconds=0.5))]))
    link.lose(WorkerLostError("the process is gone"), {"run_1": RunTotals(5, 7, 2_000_000_000)})

    assert (run.usage.prompt_tokens, run.usage.generated_tokens, run.usage.page_seconds) == (9, 7, 2.0)
    assert (other.usage.prompt_tokens, other.usage.generated_tokens, other.usage.page_seconds) == (0, 0, 0.0)


@pytest.mark.parametrize("usage", [RunUsage(host_calls=1 << 63), RunUsage(cpu_ms=-1.0), RunUsage(wall_ms=float("nan"))])
async def test_figures_that_no_run_can_have_are_not_taken_in(link: Any, usage: RunUsage) -> None:
    """The connection is closed by this; bills are made of figures."""
    run = link.start(REQUEST)
    for message in (Ended(1, usage, "null"), Beat([(1, usage)])):
        with pytest.raises(ValueError, match="has used"):
            link.handle(message)

    assert run.usage == RunUsage()
    assert link.num_runs == 1


@hypothesis.given(st.lists(st.one_of([st.from_type(kind) for kind in get_args(ToFront)]), max_size=20))
def test_whatever_a_worker_says_each_run_ends_once(messages: list[Any]) -> None:
    """It may be taken over, and know the numbers of other runs that it has."""

    async def hear() -> None:
        ours, theirs = socket.socketpair()
        connection = await Connection.open(ours, ToFront, MOST_BYTES)
        link = WorkerLink(connection)
        runs = [link.start(REQUEST) for _ in range(3)]
        with contextlib.suppress(ValueError):
            for message in messages:
                link.handle(message)
        link.lose(WorkerLostError("the process is gone"))
        for run in runs:
            events = []
            while (event := await run.next_event()) is not None:
                events.append(event)
            assert [type(event) for event in events].count(RunUsage) == 1
            with contextlib.suppress(TartletError):
                await run.result_json()
        connection.close()
        theirs.close()

    asyncio.run(hear())


async def test_a_worker_that_sends_too_much_is_not_believed(link: Any) -> None:
    """The run ends, as it should have there."""
    run = link.start(REQUEST)
    link.handle(Printed(1, "123456789"))
    link.handle(Printed(1, "more"))

    with pytest.raises(LimitExceededError):
        await run.result_json()
    assert [await run.next_event(), await run.next_event()] == [RunUsage(), None]
