"""asyncio's own event loop, with the host's `events.poll` where a selector would be.

Tasks, timeouts, queues and locks are asyncio's. There is one thread: `asyncio.to_thread` runs the function at once.
"""

from __future__ import annotations

import asyncio
import math
from asyncio import base_events
from collections.abc import Awaitable, Callable, Iterator, Sequence
from types import FrameType
from typing import Any, TypeVar

from tartlet_sdk import wit
from tartlet_sdk.errors import Deadlock, OutsideSandbox
from tartlet_sdk.host_call import call

T = TypeVar("T")

MOST_TASKS_SHOWN = 20
PATIENCE_S = 5.0  # with cancelled tasks that do not end


class HostLoop(base_events.BaseEventLoop):
    """An event loop whose selector is the host: it asks one to `select` and `_process_events`, no more."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._waiters: dict[int, list[asyncio.Future[None]]] = {}  # by event
        self._num_creating = 0  # tasks that are being made; those that start eagerly run within that

    def create_task(self, *args: Any, **options: Any) -> asyncio.Task[Any]:
        """Make a task, as `BaseEventLoop` does."""
        self._num_creating += 1
        try:
            return super().create_task(*args, **options)
        finally:
            self._num_creating -= 1

    def select(self, timeout: float | None) -> Sequence[int]:
        """Wait until an event is ready or `timeout` seconds have passed; the ready events."""
        if not self._waiters:
            if timeout is None:
                raise Deadlock(describe_deadlock(self))
            if timeout == 0:
                return ()
        return wit.events.poll(list(self._waiters), None if timeout is None else max(0, math.ceil(timeout * 1e9)))

    def _process_events(self, ready: Sequence[int]) -> None:
        for event in ready:
            for future in self._waiters.pop(event, ()):
                if not future.done():
                    future.set_result(None)

    def _write_to_self(self) -> None:
        """Wakes the selector from another thread; there is none."""

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Call `func` at once: there are no threads."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    async def wait_event(self, event: int) -> None:
        """Wait until the host's `event` is ready. Several tasks may wait for the same one."""
        future: asyncio.Future[None] = self.create_future()
        waiters = self._waiters.setdefault(event, [])
        waiters.append(future)
        try:
            await future
        finally:
            if future in waiters:
                waiters.remove(future)
            if not waiters and self._waiters.get(event) is waiters:
                del self._waiters[event]

    def forget_event(self, event: int) -> None:
        """Wake those that wait for an event of the host's which is about to be freed."""
        self._process_events([event])


def is_alone() -> bool:
    """Whether nothing but the running task can go on: no other is ready, or waits for a time or an event of the host's.

    The task may then wait in a call of the host, which costs half of a turn of the loop. One that was started eagerly
    is not alone before its first wait: whoever makes it goes on then. That holds for tasks made by `create_task`.

    Whoever makes an `asyncio.Task(..., eager_start=True)` itself, or sends into a coroutine by hand, is not seen here:
    it may have to wait until what that begins is over, and goes on with the same results.
    """
    loop: Any = asyncio.get_running_loop()
    if not isinstance(loop, HostLoop) or loop._num_creating:
        return False
    task = asyncio.current_task(loop)
    return not (loop._ready or loop._scheduled or loop._waiters) and task is not None and not task.cancelling()  # type: ignore[attr-defined]


async def wait(event: int) -> None:
    """Wait in the running loop until the host's `event` is ready."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, HostLoop):
        raise OutsideSandbox(f"the host's events need Tartlet's event loop, not {type(loop).__name__}")
    await loop.wait_event(event)


def forget(event: int) -> None:
    """Wake the tasks that wait for the host's `event`, which is about to be freed. Harmless without a loop."""
    loop = asyncio._get_running_loop()
    if isinstance(loop, HostLoop):
        loop.forget_event(event)


async def finish(event: int, name: str) -> None:
    """Wait for the operation behind `event` and raise its error, for the SDK's call `name`. Frees the event."""
    try:
        await wait(event)
    except BaseException:
        wit.events.drop_event(event)
        raise
    call(name, wit.events.outcome, event)


def run(loop: HostLoop, main: Awaitable[T], name: str = "main") -> T:
    """Run `main` as a task to its end; tasks that it leaves behind are cancelled.

    This is `asyncio.run` on a loop that is there already and goes away with the instance. A task that does not let
    itself be cancelled keeps the run from ending, which the log tells after `PATIENCE_S`.
    """
    task = asyncio.ensure_future(main, loop=loop)
    if isinstance(task, asyncio.Task):
        task.set_name(name)
    try:
        return loop.run_until_complete(task)
    finally:
        _cancel_all(loop)
        if loop._asyncgens:  # type: ignore[attr-defined]
            loop.run_until_complete(loop.shutdown_asyncgens())


def _cancel_all(loop: HostLoop) -> None:
    """Cancel the tasks that are left, and wait for their ends."""
    left = asyncio.all_tasks(loop)
    if not left:
        return
    for task in left:
        task.cancel()
    timer = loop.call_later(PATIENCE_S, _tell_who_stays, loop)
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    timer.cancel()


def _tell_who_stays(loop: HostLoop) -> None:
    wit.log.log(wit.log.Level.WARN, f"the run is over, but tasks go on although cancelled:\n{_describe_tasks(loop)}")


def describe_deadlock(loop: asyncio.AbstractEventLoop) -> str:
    """Say which tasks wait, and where."""
    return f"deadlock: every task waits, and nothing is left that could wake one\n{_describe_tasks(loop)}"


def _describe_tasks(loop: asyncio.AbstractEventLoop) -> str:
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    lines = [f"  {task.get_name()} waits at {_place(task)}" for task in tasks[:MOST_TASKS_SHOWN]]
    if len(tasks) > MOST_TASKS_SHOWN:
        lines.append(f"  and {len(tasks) - MOST_TASKS_SHOWN} more")
    return "\n".join(lines)


def _place(task: asyncio.Task[Any]) -> str:
    """File, line and function where the author's code waits: the innermost frame that is not a library's."""
    frames = list(_frames(task.get_coro()))
    frame = next((f for f in reversed(frames) if not f.f_code.co_filename.startswith(("/", "<"))), None) or frames[0]
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"


def _frames(waiting: Any) -> Iterator[FrameType]:
    """The frames of a suspended coroutine, outermost first, along what each of them awaits."""
    while waiting is not None:
        kind = next((kind for kind in ("cr", "ag", "gi") if hasattr(waiting, f"{kind}_frame")), None)
        if kind is None:
            return
        frame = getattr(waiting, f"{kind}_frame")
        if frame is not None:
            yield frame
        waiting = getattr(waiting, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
