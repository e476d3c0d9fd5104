"""A run, as its caller sees it: events, result, cancel."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from tartlet.errors import GuestError, RunCancelledError, TartletError
from tartlet.events import RunEvent, RunUsage
from tartlet.limits import Limits
from tartlet.runtime.channel import Channel
from tartlet.runtime.run_state import RunState
from tartlet.runtime.supervisor import Supervisor


class Run:
    """One run of a program, as its caller sees it. Made by `Host.start`.

    Iterate over it for its events; `result()` waits for its end. Neither is needed for it to go on. The last event is
    its `RunUsage`. Iterating never raises: how the run ended is the business of `result()`.
    """

    def __init__(self, state: RunState, channel: Channel, supervisor: Supervisor) -> None:
        self._state = state
        self._channel = channel
        self._supervisor = supervisor

    @property
    def id(self) -> str:
        """The run's id, unique and hard to guess."""
        return self._state.run_id

    @property
    def limits(self) -> Limits:
        """What it may use."""
        return self._state.limits

    @property
    def seed(self) -> int:
        """What its random choices come from."""
        return self._state.seed

    @property
    def usage(self) -> RunUsage:
        """What it has used so far; all of it, once it has ended."""
        return self._state.usage

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._channel.has_ended

    def cancel(self) -> None:
        """End the run, within a few milliseconds; `result()` then raises RunCancelledError. Returns at once.

        No effect if it has ended. From any thread.
        """
        self._supervisor.end(self._state, RunCancelledError("the run was cancelled"))

    async def result(self) -> Any:
        """Wait for the run's end, and give what the program returned, decoded from JSON.

        Cancelling this wait does not cancel the run. May be called any number of times.

        Raises:
            GuestError: The program failed; the message has its traceback.
            GuestTrapError: It trapped.
            LimitExceededError: It exceeded one of its limits; has `limit`, `used` and `allowed`.
            InvalidHandleError, DeadlockError: It used what it does not hold, or waits for what can never happen.
            RunCancelledError: It was cancelled, or the host was closed.
            EngineStoppedError: The engine is gone.
        """
        text = await self.result_text()
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise GuestError(f"the program's result is not JSON: {error}: {text[:200]!r}") from None

    async def result_text(self) -> str:
        """As `result`, but just as the program wrote it, which need not be JSON."""
        outcome = await self._channel.outcome()
        if isinstance(outcome, TartletError):
            raise outcome.with_traceback(None)
        return outcome

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        return self

    async def next_event(self) -> RunEvent | None:
        """Wait for the next event; None after the last. Cancelling this wait loses no event."""
        return await self._channel.next()

    async def __anext__(self) -> RunEvent:
        event = await self.next_event()
        if event is None:
            raise StopAsyncIteration
        return event
