"""A run in a worker, as the front keeps it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from tartlet.errors import LimitExceededError, TartletError
from tartlet.events import Log, RunEvent, RunUsage, Variable
from tartlet.limits import Limits
from tartlet.runtime.channel import Channel, LoopWaker, Outcome
from tartlet.server.engine.messages import RunTotals
from tartlet.server.requests import RunRequest
from tartlet.server.worker.messages import Logged, Printed, Written

_EVENT_BYTES = 64
"""Charged for a log line or a variable besides its text, as the host does."""

EventMessage: TypeAlias = Printed | Logged | Written


class RemoteRun:
    """Implements `RunHandle`. What its reader has not taken waits here, bounded by the run's output limit.

    The worker holds runs to that limit. If it does not, something in it has gone wrong, or it has been taken over: what
    is too much is not kept.

    Args:
        request: What was asked for.
        waker: Of the front's loop.
        cancel: Tells the worker.
    """

    def __init__(self, request: RunRequest, waker: LoopWaker, cancel: Callable[[], None]) -> None:
        self.usage = RunUsage()
        """As far as it is known."""
        self._started = time.monotonic()
        self._run_id = request.run_id
        self._cancel = cancel
        self._channel = Channel(waker)
        self._allowed = request.limits.get("max_output_bytes", Limits().max_output_bytes)
        self._used = 0

    # ---- RunHandle ----

    @property
    def run_id(self) -> str:
        """As in the request."""
        return self._run_id

    async def next_event(self) -> RunEvent | None:
        """See `RunHandle`."""
        return await self._channel.next()

    async def result_json(self) -> str:
        """See `RunHandle`."""
        outcome = await self._channel.outcome()
        if isinstance(outcome, TartletError):
            raise outcome.with_traceback(None)
        return outcome

    def cancel(self) -> None:
        """See `RunHandle`."""
        if not self._channel.has_ended:
            self._cancel()

    # ---- What the worker says ----

    def take(self, message: EventMessage) -> None:
        """Take in an event. Raises LimitExceededError if it is more than the run may write."""
        match message:
            case Printed(_, text):
                self._count(len(text))
                self._channel.put_text(text)
            case Logged(_, level, text):
                self._count(len(text) + _EVENT_BYTES)
                self._channel.put(Log(level, text))
            case Written(_, name, value, version):
                self._count(len(name) + len(value) + _EVENT_BYTES)
                self._channel.put(Variable(name, value, version))

    def end(self, usage: RunUsage, outcome: Outcome) -> None:
        """Take in how it ended. Once."""
        self.usage = usage
        self._channel.close(usage, outcome)

    def usage_when_lost(self, totals: RunTotals | None) -> RunUsage:
        """What it had used when its worker was lost: what that told last, or the engine, whichever is more."""
        usage = self.usage
        wall_ms = max(usage.wall_ms, (time.monotonic() - self._started) * 1000)
        if totals is None:
            return replace(usage, wall_ms=wall_ms)
        return replace(
            usage,
            wall_ms=wall_ms,
            prompt_tokens=max(usage.prompt_tokens, totals.prompt_tokens),
            generated_tokens=max(usage.generated_tokens, totals.generated_tokens),
            page_seconds=max(usage.page_seconds, totals.page_ns / 1e9),
        )

    def _count(self, size: int) -> None:
        """Count characters, of which there are at most as many as bytes."""
        self._used += size
        if self._allowed is not None and self._used > self._allowed:
            raise LimitExceededError("output_limit", limit="max_output_bytes", used=self._used, allowed=self._allowed)
