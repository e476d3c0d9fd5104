"""A run as the front knows it: its last events, its end, and who holds it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from typing import Literal

from tartlet.errors import LimitExceededError, RunCancelledError, TartletError, UnavailableError, WorkerLostError
from tartlet.events import RunUsage
from tartlet.server.failures import to_failure
from tartlet.server.front.run_events import Dropped, EventBuffer, Numbered, Outcome
from tartlet.server.front.scarcity import scarcity
from tartlet.server.raw_json import checked_json
from tartlet.server.requests import RunRequest
from tartlet.server.sandboxes import RunHandle, Sandboxes
from tartlet.server.worker.messages import MAX_RESULT_BYTES

logger = logging.getLogger("tartlet.server")

BUFFER_BYTES = 1 << 20
"""Of each run's events, for readers that come late or are slow."""

CancelledBy = Literal["client", "request", "shutdown"]
NO_USAGE = RunUsage()
"""Of a run of which nothing is known yet."""


class LiveRun:
    """A run of the registry. Any number of readers follow it, from any event on; none holds it up.

    Args:
        tenant: whose it is.
        program: what the client called the program.
        digest: of the program.
        is_detached: it goes on when nobody holds it any more.
        buffer_bytes: how much of its events is kept.
    """

    def __init__(
        self, tenant: str, program: str, digest: str, *, is_detached: bool = False, buffer_bytes: int = BUFFER_BYTES
    ) -> None:
        self.run_id = f"run_{secrets.token_hex(16)}"
        self.tenant = tenant
        self.program = program
        self.digest = digest
        self.is_detached = is_detached
        self.created_ms = int(time.time() * 1000)
        """Milliseconds since 1970."""
        self.is_admitted = False
        """Whether its start has been allowed."""
        self.usage = RunUsage()
        """All of it once it has ended; what is known before is nothing."""
        self.outcome: Outcome | None = None
        """How it has ended; None while it goes on."""
        self.cancelled_by: CancelledBy | None = None
        """Who wanted its end, if somebody did: a client by going away or by a request, or the server, shutting down."""
        self._buffer = EventBuffer(buffer_bytes)
        self._changed = asyncio.Event()
        self._handle: RunHandle | None = None
        self._reason: TartletError | None = None  # why we cancelled it
        self._num_holders = 0

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.outcome is not None

    @property
    def usage_so_far(self) -> RunUsage:
        """What it has used, as far as that is known, which of a run in a worker is a second ago."""
        return self.usage if self._handle is None else self._handle.usage

    @property
    def num_kept_bytes(self) -> int:
        """What its events and its result take."""
        result_json = None if self.outcome is None else self.outcome.result_json
        return self._buffer.num_bytes + len(result_json or "")

    @property
    def last_number(self) -> int:
        """The number of its newest event; 0: there was none."""
        return self._buffer.last

    async def follow(self, after: int = 0) -> AsyncIterator[Numbered | Dropped]:
        """Give the events after this number, as they come, until the last, which is the `RunUsage`."""
        while True:
            changed = self._changed
            read = self._buffer.after(after)
            if read is not None:
                after = read.number if isinstance(read, Numbered) else read.last
                yield read
            elif self.has_ended:
                return
            else:
                await changed.wait()

    async def ended(self) -> Outcome:
        """Wait for its end."""
        while self.outcome is None:
            await self._changed.wait()
        return self.outcome

    async def result_json(self) -> str:
        """Wait for its end, and give what the program returned, as JSON text. Raises the error that it ended with."""
        outcome = await self.ended()
        outcome.raise_failure()
        return outcome.result_json or "null"

    def cancel(self, reason: TartletError | None = None, *, by: CancelledBy = "request") -> None:
        """End it soon; it then fails with this reason. Returns at once; no effect if it has ended."""
        if self.has_ended:
            return
        if self._reason is None:
            self._reason, self.cancelled_by = reason or RunCancelledError("the run was cancelled"), by
        if self._handle is not None:
            self._handle.cancel()

    async def cancel_and_wait(self, seconds: float) -> None:
        """End it soon, and wait for that, but not longer than this."""
        self.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended(), seconds)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold it, as a client does that waits for it: when the last one lets go, it is cancelled unless detached."""
        self._num_holders += 1
        try:
            yield
        finally:
            self._num_holders -= 1
            if not self._num_holders and not self.is_detached:
                self.cancel(RunCancelledError("the client that had asked for the run is gone"), by="client")

    async def drive(self, sandboxes: Sandboxes, request: RunRequest) -> Outcome:
        """Start it, keep its events, and tell how it has ended. Never raises but when it is cancelled itself."""
        try:
            self._handle = handle = await sandboxes.start(request)
            if self._reason is not None:
                handle.cancel()
            while (event := await handle.next_event()) is not None:
                if isinstance(event, RunUsage):
                    self.usage = event
                self._buffer.append(event)
                self._wake()
            result_json = await handle.result_json()
            if len(result_json) > MAX_RESULT_BYTES:
                raise LimitExceededError(
                    "output_limit", limit="result_bytes", used=len(result_json), allowed=MAX_RESULT_BYTES
                )
            return Outcome("succeeded", _checked(result_json))
        except TartletError as error:
            if isinstance(error, RunCancelledError):
                return Outcome("cancelled", failure=to_failure(self._reason or error))
            return Outcome("failed", failure=to_failure(error))
        except Exception as error:
            if isinstance(error, OSError) and (found := scarcity(error)) is not None:
                return Outcome("failed", failure=to_failure(UnavailableError(found.message, hint=found.hint)))
            logger.exception("fault", extra={"run_id": self.run_id})
            return Outcome("failed", failure=to_failure(UnavailableError(f"internal error: {type(error).__name__}")))

    def finish(self, outcome: Outcome) -> None:
        """Tell all readers how it has ended."""
        self._handle = None
        self.outcome = outcome
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _checked(result_json: str) -> str:
    """See `checked_json`. Raises WorkerLostError for what no worker that is well would give as a result."""
    try:
        return checked_json(result_json)
    except (ValueError, RecursionError):
        raise WorkerLostError("the process that ran the program gave something else than a result") from None
