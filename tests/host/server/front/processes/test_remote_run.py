from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tartlet.errors import GuestError, LimitExceededError
from tartlet.events import Log, Output, RunUsage, Variable
from tartlet.runtime.channel import LoopWaker
from tartlet.server.front.processes.remote_run import RemoteRun
from tartlet.server.requests import ProgramRef, RunRequest
from tartlet.server.worker.messages import Logged, Printed, Written

USAGE = RunUsage(host_calls=3)


def remote_run(*cancels: Any, **limits: int | None) -> RemoteRun:
    request = RunRequest("run_1", "acme", ProgramRef("d", "p", "source", "n"), "null", dict(limits))
    return RemoteRun(request, LoopWaker(asyncio.get_running_loop()), *cancels or (lambda: None,))


async def test_events_wait_for_their_reader() -> None:
    """In order, text merged, the usage last; then the result, as often as one asks."""
    run = remote_run()
    for message in (Printed(1, "one "), Printed(1, "two"), Logged(1, "info", "line"), Written(1, "name", "value", 2)):
        run.take(message)
    run.end(USAGE, "[1]")

    events = [await run.next_event() for _ in range(5)]
    assert events == [Output("one two"), Log("info", "line"), Variable("name", "value", 2), USAGE, None]
    assert [await run.result_json() for _ in range(2)] == ["[1]", "[1]"]


async def test_a_failure_is_raised() -> None:
    """As the worker told it."""
    run = remote_run()
    run.end(USAGE, GuestError("what"))

    with pytest.raises(GuestError, match="what"):
        await run.result_json()


async def test_more_than_it_may_write_is_not_kept() -> None:
    """Each event costs something, so that empty ones do, too."""
    run = remote_run(max_output_bytes=128)
    run.take(Printed(1, "x" * 60))
    run.take(Logged(1, "info", ""))
    with pytest.raises(LimitExceededError, match="used 129"):
        run.take(Printed(1, "x" * 5))

    unlimited = remote_run(max_output_bytes=None)
    unlimited.take(Printed(1, "x" * (5 << 20)))
    with pytest.raises(LimitExceededError):
        remote_run().take(Printed(1, "x" * (5 << 20)))


async def test_cancel_is_told_while_it_runs() -> None:
    """Afterwards there is nothing to cancel."""
    told: list[int] = []
    run = remote_run(lambda: told.append(1))
    run.cancel()
    run.end(USAGE, "null")
    run.cancel()

    assert told == [1]
