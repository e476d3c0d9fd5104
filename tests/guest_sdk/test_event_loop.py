"""asyncio on the host's events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tartlet_sdk import Deadlock, OutsideSandbox, event_loop


def test_a_deadlock_names_the_tasks_and_where_they_wait(run_async: Callable[..., Any]) -> None:
    """Nothing to wait for and no timer: the error lists every task, with its place."""

    async def consumer(queue: asyncio.Queue[int]) -> None:
        await queue.get()

    async def main() -> None:
        queue: asyncio.Queue[int] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            group.create_task(consumer(queue), name="consumer")

    with pytest.raises(Deadlock) as caught:
        run_async(main())

    lines = str(caught.value).splitlines()
    assert lines[0] == "deadlock: every task waits, and nothing is left that could wake one"
    assert [line.split()[0] for line in lines[1:]] == ["consumer", "main"]
    assert all("test_event_loop.py:" in line for line in lines[1:])


def test_a_thread_runs_at_once(run_async: Callable[..., Any]) -> None:
    """`asyncio.to_thread` works without threads; its exception is the caller's."""

    async def main() -> int:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(lambda: 5)

    assert run_async(main()) == 5


def test_tasks_left_behind_are_cancelled(run_async: Callable[..., Any]) -> None:
    """When the main coroutine ends, so does everything that it started."""
    ended: list[str] = []

    async def other() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("other")

    async def main() -> list[asyncio.Task[None]]:
        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        return [task]

    assert [task.cancelled() for task in run_async(main())] == [True]
    assert ended == ["other"]


def test_several_tasks_can_wait_for_one_event(run_async: Callable[..., Any]) -> None:
    """Each is woken; one that is cancelled does not take the others with it."""

    async def main() -> list[Any]:
        tasks = [asyncio.create_task(event_loop.wait(7)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third = run_async(main())
    assert (first, type(second), third) == (None, asyncio.CancelledError, None)


async def test_another_loop_is_refused() -> None:
    """The host's events need the SDK's loop; any other is named."""
    with pytest.raises(OutsideSandbox, match="need Tartlet's event loop"):
        await event_loop.wait(1)


def test_a_task_that_will_not_be_cancelled_is_named(
    run_async: Callable[..., Any], stub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run waits for it, and its log says for whom, and where that is."""
    logged: list[tuple[Any, str]] = []
    tasks: list[asyncio.Task[None]] = []
    monkeypatch.setattr(stub.log, "log", lambda level, message: logged.append((level, message)))
    monkeypatch.setattr(event_loop, "PATIENCE_S", 0.0)

    async def stubborn() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)

    async def main() -> None:
        tasks.append(asyncio.create_task(stubborn(), name="stubborn"))
        await asyncio.sleep(0)

    run_async(main())

    ((level, message),) = logged
    assert level is stub.log.Level.WARN
    assert message.startswith("the run is over, but tasks go on although cancelled:\n  stubborn waits at ")
    assert "test_event_loop.py:" in message
