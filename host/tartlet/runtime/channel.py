"""The way of a run's events from the executor's thread to the caller's asyncio loop."""

from __future__ import annotations

import asyncio
import contextlib
import io
import threading
from collections import deque
from typing import TypeAlias

from tartlet.errors import ConfigError, TartletError
from tartlet.events import Log, Output, RunEvent, RunUsage, Variable

Outcome: TypeAlias = str | TartletError
"""How a run ended: the JSON text that the program returned, or why there is none."""


class LoopWaker:
    """Wake the consumers of many channels with one call into their loop, since each such call costs a system call."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._channels: deque[Channel] = deque()
        self._is_scheduled = False
        self._lock = threading.Lock()

    def wake(self, channel: Channel) -> None:
        """Let the channel's consumers look again. From any thread; after the loop's end it does nothing."""
        with self._lock:
            self._channels.append(channel)
            if self._is_scheduled or self.loop.is_closed():
                return
            self._is_scheduled = True
        with contextlib.suppress(RuntimeError):  # it was closed just now
            self.loop.call_soon_threadsafe(self._wake_all)

    def check_loop(self) -> None:
        """Raise ConfigError on another loop than the one that is woken, where a wait would never end."""
        if asyncio.get_running_loop() is not self.loop:
            raise ConfigError(
                "this is another event loop than the one in which the host was opened",
                hint="Wait there (asyncio.run_coroutine_threadsafe), or use tartlet.sync, which works from any thread.",
            )

    def _wake_all(self) -> None:
        with self._lock:
            self._is_scheduled = False
            channels = list(self._channels)
            self._channels.clear()
        for channel in channels:
            channel.on_wake()


class Channel:
    """The events that the caller has not taken yet, then the outcome.

    Writing never waits: what a run may write is bounded by its output limit. Text that waits is merged, and so uses
    little more memory than its characters.
    """

    def __init__(self, waker: LoopWaker) -> None:
        self._waker = waker
        self._lock = threading.Lock()  # guards the five below
        self._events: deque[Log | Variable | RunUsage | io.StringIO] = deque()
        self._outcome: Outcome | None = None
        self._is_event_awaited = False
        self._is_end_awaited = False
        self._is_closed = False
        self._has_news = asyncio.Event()
        self._ended = asyncio.Event()

    # ---- The executor's side ----

    def put_text(self, text: str) -> None:
        """Add output text."""
        with self._lock:
            if not self._events or not isinstance(self._events[-1], io.StringIO):
                self._events.append(io.StringIO())
            last = self._events[-1]
            assert isinstance(last, io.StringIO)
            last.write(text)
            must_wake, self._is_event_awaited = self._is_event_awaited, False
        if must_wake:
            self._waker.wake(self)

    def put(self, event: Log | Variable) -> None:
        """Add a log line, or a variable that is written."""
        with self._lock:
            self._events.append(event)
            must_wake, self._is_event_awaited = self._is_event_awaited, False
        if must_wake:
            self._waker.wake(self)

    def close(self, usage: RunUsage, outcome: Outcome) -> None:
        """Add the last event, and the outcome."""
        with self._lock:
            self._events.append(usage)
            self._outcome = outcome
            self._is_closed = True
            must_wake = self._is_event_awaited or self._is_end_awaited
        if must_wake:
            self._waker.wake(self)

    # ---- The loop's side ----

    async def next(self) -> RunEvent | None:
        """The next event, when there is one; None after the last. Raises ConfigError for a wait on another loop."""
        while True:
            with self._lock:
                if self._events:
                    event = self._events.popleft()
                    return Output(event.getvalue()) if isinstance(event, io.StringIO) else event
                if self._is_closed:
                    return None
                self._waker.check_loop()
                self._has_news.clear()
                self._is_event_awaited = True
            await self._has_news.wait()

    async def outcome(self) -> Outcome:
        """The outcome, when there is one. Raises ConfigError for a wait on another loop."""
        with self._lock:
            self._is_end_awaited = True
            must_wait = not self._is_closed
        if must_wait:
            self._waker.check_loop()
            await self._ended.wait()
        assert self._outcome is not None
        return self._outcome

    @property
    def has_ended(self) -> bool:
        """Whether the outcome is there. From any thread."""
        return self._is_closed

    def on_wake(self) -> None:
        """Called on the loop by the waker."""
        self._has_news.set()
        if self._is_closed:
            self._ended.set()
