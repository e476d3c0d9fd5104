from __future__ import annotations

import asyncio
import errno

import pytest

from tartlet.errors import LimitExceededError, RunCancelledError, UnavailableError
from tartlet.events import Output, RunEvent, RunUsage
from tartlet.server.front import live_run
from tartlet.server.front.live_run import NO_USAGE, LiveRun
from tartlet.server.front.run_events import Dropped, Numbered, Outcome
from tartlet.server.requests import ProgramRef, RunRequest
from tartlet.server.sandboxes import Sandboxes

REQUEST = RunRequest("r", "acme", ProgramRef("d", "p", "source", "n"), "null", {})


class Script:
    """A run that plays events, then waits for `go` or its cancellation. It stands for what other processes do."""

    def __init__(self, events: list[RunEvent], result_json: str = "1", *, is_endless: bool = False) -> None:
        self._events = [*events]
        self._result_json = result_json
        self._cancelled = asyncio.Event()
        self._is_endless = is_endless
        self.run_id = "r"
        self.usage = RunUsage(generated_tokens=5)

    async def next_event(self) -> RunEvent | None:
        if len(self._events) == 0 and self._is_endless:
            await self._cancelled.wait()
        return self._events.pop(0) if self._events else None

    async def result_json(self) -> str:
        if self._cancelled.is_set():
            raise RunCancelledError("the run was cancelled")
        return self._result_json

    def cancel(self) -> None:
        self._cancelled.set()


class Scripted:
    """Sandboxes that start one script."""

    def __init__(self, script: Script | None) -> None:
        self._script = script

    async def start(self, request: RunRequest) -> Script:
        if self._script is None:
            raise UnavailableError("there is nobody to run it")
        return self._script


def scripted(script: Script | None) -> Sandboxes:
    return Scripted(script)  # type: ignore[return-value]


async def drive(run: LiveRun, script: Script | None) -> Outcome:
    outcome = await run.drive(scripted(script), REQUEST)
    run.finish(outcome)
    return outcome


def new_run(**options: int | bool) -> LiveRun:
    return LiveRun("acme", "p", "d", **options)  # type: ignore[arg-type]


async def test_many_follow_one_run() -> None:
    """Each reads all events at its own pace; those who come late replay what is kept."""
    run = new_run()
    early = asyncio.create_task(_follow(run))
    await asyncio.sleep(0)
    await drive(run, Script([Output("a"), Output("b"), RunUsage(host_calls=1)]))

    assert await early == await _follow(run) == [1, 2, 3]
    assert await _follow(run, after=2) == [3]
    assert await _follow(run, after=99) == []
    assert run.usage.host_calls == 1


async def test_a_slow_reader_hears_what_it_missed() -> None:
    """It does not hold the run up, and nothing piles up for it."""
    run = new_run(buffer_bytes=1024)
    reader = run.follow()
    await drive(run, Script([Output("x" * 400) for _ in range(20)]))

    assert await anext(reader) == Dropped(1, 18)
    assert run.num_kept_bytes < 2048


async def test_the_result_and_the_error() -> None:
    """Whoever waits gets the one or the other."""
    run = new_run()
    assert (await drive(run, Script([], '{"n": 1}'))).status == "succeeded"
    assert await run.result_json() == '{"n": 1}'
    failed = new_run()
    assert (await drive(failed, None)).status == "failed"
    with pytest.raises(UnavailableError):
        await failed.result_json()


async def test_the_last_who_lets_go_ends_it() -> None:
    """Not the first; and the reason is told."""
    run = new_run()
    driving = asyncio.create_task(drive(run, Script([], is_endless=True)))
    with run.held():
        with run.held():
            await asyncio.sleep(0)
        assert not driving.done()
    outcome = await driving

    assert outcome.status == "cancelled"
    assert "gone" in str(outcome.error())


async def test_a_detached_run_goes_on() -> None:
    """Nobody needs to hold it; it can be cancelled all the same."""
    run = new_run(is_detached=True)
    driving = asyncio.create_task(drive(run, Script([], is_endless=True)))
    with run.held():
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not driving.done()
    run.cancel()

    assert (await driving).status == "cancelled"
    run.cancel()


async def test_a_run_cancelled_before_it_starts() -> None:
    """It ends as soon as it is there."""
    run = new_run()
    run.cancel()

    assert (await drive(run, Script([], is_endless=True))).status == "cancelled"


async def test_a_result_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not kept; the error tells how long it was."""
    monkeypatch.setattr(live_run, "MAX_RESULT_BYTES", 10)
    run = new_run()
    await drive(run, Script([], '"' + "x" * 20 + '"'))

    with pytest.raises(LimitExceededError) as error:
        await run.result_json()
    assert (error.value.used, error.value.allowed) == (22, 10)


async def _follow(run: LiveRun, after: int = 0) -> list[int]:
    return [read.number async for read in run.follow(after) if isinstance(read, Numbered)]


async def test_what_it_has_used_is_known_while_it_goes_on() -> None:
    """As far as who runs it has told; in the end all of it."""
    run, script = LiveRun("acme", "p", "d"), Script([], is_endless=True)
    before = run.usage_so_far
    driving = asyncio.create_task(run.drive(scripted(script), REQUEST))
    await asyncio.sleep(0)
    assert (before, run.usage_so_far) == (NO_USAGE, RunUsage(generated_tokens=5))
    run.cancel()
    run.usage = RunUsage(generated_tokens=7)
    run.finish(await driving)

    assert run.usage_so_far.generated_tokens == 7


async def test_a_result_that_is_none_is_the_workers_fault() -> None:
    """It is neither kept nor told: who reads it later would stumble over it."""
    for result_json in ("not JSON", "[1", "[" * 100_000):
        outcome = await drive(LiveRun("acme", "p", "d"), Script([], result_json))

        assert outcome.failure is not None
        assert (outcome.status, outcome.failure.code) == ("failed", "worker_lost")


async def test_a_want_of_files_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run fails as one that may be started again."""

    async def start(_: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    sandboxes = scripted(None)
    monkeypatch.setattr(sandboxes, "start", start)
    outcome = await LiveRun("acme", "p", "d").drive(sandboxes, REQUEST)

    assert outcome.failure is not None
    assert outcome.failure.code == "unavailable"
    assert "files" in outcome.failure.message
