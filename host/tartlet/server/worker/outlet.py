"""The way of a run's events, and of its outcome, from a worker to the front, in messages of bounded size."""

from __future__ import annotations

import asyncio

import msgspec

from tartlet.errors import LimitExceededError, RunError, TartletError, WireError
from tartlet.events import Log, Output, RunEvent, RunUsage
from tartlet.server.failures import Failure, to_failure
from tartlet.server.host_sandboxes import HostRun
from tartlet.server.worker.connection import Connection
from tartlet.server.worker.messages import (
    MAX_FAILURE_CHARS,
    MAX_RESULT_BYTES,
    MAX_TEXT_BYTES,
    Logged,
    Printed,
    Written,
)

_CHARS_OF_A_TEXT = MAX_TEXT_BYTES // 4  # a character has up to four bytes
_EVENTS_OF_A_TURN = 64


class Outlet:
    """Sends what one run says, as fast as the front takes it; until then it waits where the run's output limit holds.

    Args:
        connection: To the front.
        number: The run's.
    """

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self._number = number

    async def carry(self, run: HostRun) -> None:
        """Send the run's events, but for the last, which is its usage.

        Raises RunError, code `output_limit`, for a log line or variable that fits no message; the run is cancelled.
        """
        num_sent = 0
        while (event := await run.next_event()) is not None:
            try:
                self._send(event)
            except RunError:
                run.cancel()
                raise
            await self._connection.drain()
            num_sent += 1
            if num_sent % _EVENTS_OF_A_TURN == 0:
                await asyncio.sleep(0)  # what is there comes without a pause; others have their turn, too

    def _send(self, event: RunEvent) -> None:
        if isinstance(event, Output):
            for begin in range(0, len(event.text), _CHARS_OF_A_TEXT):
                self._connection.send(Printed(self._number, event.text[begin : begin + _CHARS_OF_A_TEXT]))
            return
        if isinstance(event, RunUsage):
            return
        try:
            if isinstance(event, Log):
                self._connection.send(Logged(self._number, event.level, event.message))
            else:
                self._connection.send(Written(self._number, event.name, event.value, event.version))
        except WireError as error:
            raise RunError(
                f"a log line or variable cannot be passed on: {error.message}", code="output_limit"
            ) from None


def checked_result(result_json: str) -> str:
    """A program's result, if it is not too large. Raises LimitExceededError, code `output_limit`."""
    size = len(result_json.encode())
    if size > MAX_RESULT_BYTES:
        hint = "Print it: output is passed on in pieces."
        raise LimitExceededError("output_limit", limit="result_bytes", used=size, allowed=MAX_RESULT_BYTES, hint=hint)
    return result_json


def bounded_failure(error: TartletError) -> Failure:
    """Write an error down. A program chooses the text of its own, which may be huge, or no Unicode."""
    failure = to_failure(error)
    message, hint = (
        text[:MAX_FAILURE_CHARS].encode("utf-8", "replace").decode() for text in (failure.message, failure.hint)
    )
    if len(failure.message) > MAX_FAILURE_CHARS:
        message += f"\n... {len(failure.message) - MAX_FAILURE_CHARS:,} more characters"
    return msgspec.structs.replace(failure, message=message, hint=hint)
