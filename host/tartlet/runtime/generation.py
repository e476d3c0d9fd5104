"""A generation as the host sees it: what has come and has not been read yet, and how it ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tartlet.runtime.context import ContextState
from tartlet.runtime.engine_link import NEVER
from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.refusal import engine_refusal, refusal
from tartlet_engine.api import (
    CancelGeneration,
    Chunk,
    EngineError,
    ErrorCode,
    Event,
    Failed,
    Finished,
    Generate,
    PositionLogprobs,
    Sampling,
    Speculation,
    Stop,
)

if TYPE_CHECKING:
    from tartlet.runtime.run_state import RunState


class UnreadChunk:
    """What a generation has produced since the program last read it."""

    __slots__ = ("finish", "logprobs", "text", "token_ids")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.token_ids: list[int] = []
        self.logprobs: list[PositionLogprobs] = []
        self.finish: Finished | None = None


class GenerationState:
    """One generation of a run. Lives on the executor's thread.

    Its event is ready while there is something to read: the end, and if it streams, also what came at least
    `interval_ns` after the last read. None: it does not stream.
    """

    def __init__(
        self,
        context: ContextState,
        sampling: Sampling,
        stop: Stop,
        interval_ns: int | None,
        *,
        num_logprobs: int | None = None,
        constraint_id: int | None = None,
        speculation: Speculation | None = None,
        mask_id: int | None = None,
    ) -> None:
        self.run: RunState = context.run
        self.context = context
        self.event = self.run.events.add()
        self.is_cancelled = False
        self._generation_id = self.run.link.new_id()
        self._interval_ns = interval_ns
        self._due_ns = NEVER if interval_ns is None else 0  # when chunks are announced again
        self._is_dropped = False
        self._has_ended = False
        self._unread: UnreadChunk | None = UnreadChunk()  # None: the last chunk has been read
        self._error: EngineError | None = None
        context.generation = self
        self.run.counters.begin_generation(context.length)
        self.run.link.register(self._generation_id, self, quiet_until_ns=self._due_ns)
        command = Generate(
            self._generation_id,
            context.context_id,
            sampling,
            stop,
            num_logprobs,
            constraint_id,
            mask_id=mask_id,
            speculation=speculation,
        )
        self.run.submit(command)

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in what the engine says of it."""
        if isinstance(event, Chunk):
            self._add(event, at_ns)
        elif isinstance(event, Finished):
            if self._unread is not None:
                self._unread.finish = event
            self._end(event)
        elif isinstance(event, Failed):
            self._error = event.error
            self._end(None)

    def read(self) -> UnreadChunk:
        """What has come since the last read. Raises a refusal if it failed, or after the last chunk."""
        if self._error is not None:
            raise engine_refusal(self._error)
        if self._unread is None:
            raise refusal(ErrorCode.NOT_FOUND, "the generation has ended, and its last chunk has been read")
        chunk, is_last = self._unread, self._unread.finish is not None
        self._unread = None if is_last else UnreadChunk()
        self.event.status = EventStatus.SPENT if is_last else EventStatus.PENDING
        if self._interval_ns and not self._has_ended:
            self._due_ns = time.monotonic_ns() + self._interval_ns
            self.run.link.set_quiet_until(self._generation_id, self._due_ns)
        return chunk

    def cancel(self) -> None:
        """End it at the next step. No effect if it has ended."""
        if not self._has_ended and not self.is_cancelled:
            self.is_cancelled = True
            self.run.submit(CancelGeneration(self._generation_id))

    def drop(self) -> None:
        """Cancel it; what still comes is only appended to the context."""
        self._is_dropped = True
        self._unread = None
        self.run.events.drop(self.event)
        self.cancel()

    def _add(self, chunk: Chunk, at_ns: int) -> None:
        self.context.tokens.extend(chunk.token_ids)
        if chunk.token_ids:  # text that was held back may come alone
            self.run.counters.add_tokens(len(chunk.token_ids), at_ns)
        if self._unread is not None:
            self._unread.text.append(chunk.text)
            self._unread.token_ids.extend(chunk.token_ids)
            self._unread.logprobs.extend(chunk.logprobs)
            if at_ns >= self._due_ns:
                self.run.events.set_ready(self.event)

    def _end(self, finished: Finished | None) -> None:
        self._has_ended = True
        self.run.link.unregister(self._generation_id)
        self.run.counters.end_generation(finished.usage if finished else None)
        if not self._is_dropped:
            self.run.events.set_ready(self.event, self._error)
        self.context.end_generation()
