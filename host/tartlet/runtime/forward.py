"""A forward pass as the host sees it: what it has found and has not been read yet, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tartlet.runtime.context import ContextState
from tartlet.runtime.refusal import engine_refusal, invalid_argument, refusal
from tartlet_engine.api import (
    CommitForward,
    DiscardForward,
    EngineError,
    ErrorCode,
    Event,
    Failed,
    Forward,
    Forwarded,
    RowRequest,
)

if TYPE_CHECKING:
    from tartlet.runtime.run_state import RunState

MAX_PASSES = 64
"""Of a run at a time."""

_FREED = EngineError(ErrorCode.CANCELLED, "the context was freed before the pass was computed")
_DISCARDED = EngineError(ErrorCode.CANCELLED, "the pass was discarded before it was computed")


class ForwardPass:
    """One pass of a run. Lives on the executor's thread.

    The context is busy until it has ended: committed, discarded, failed, or because the context was freed.
    """

    def __init__(
        self,
        context: ContextState,
        token_ids: Sequence[int],
        *,
        parents: Sequence[int] | None,
        positions: Sequence[int] | None,
        requests: tuple[RowRequest, ...],
        logprobs: bool,
    ) -> None:
        """Begin it. Rows are numbered as the engine does: -1 is the context's last token.

        Raises a refusal if the run has too many passes.
        """
        self.run: RunState = context.run
        if self.run.counters.num_passes >= MAX_PASSES:
            raise refusal(
                ErrorCode.QUOTA_EXCEEDED,
                f"the run has {self.run.counters.num_passes} forward passes; {MAX_PASSES} are allowed at a time",
                "Commit or discard some of them; one counts until it is dropped.",
            )
        self.event = self.run.events.add()
        self.run.counters.num_passes += 1
        self._context = context
        self._operation_id = self.run.link.new_id()
        self._token_ids = tuple(token_ids)
        self._parents = None if parents is None else tuple(parents)
        self._positions = None if positions is None else tuple(positions)
        self._found: Forwarded | None = None
        self._is_computed = False
        self._has_ended = False
        self._error: EngineError | None = None
        context.forward = self
        self.run.link.register(self._operation_id, self)
        self.run.submit(
            Forward(
                self._operation_id,
                context.context_id,
                self._token_ids,
                self._parents,
                self._positions,
                requests,
                logprobs,
            )
        )

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that it is computed, or cannot be."""
        if isinstance(event, Forwarded):
            self._found = event
            self._is_computed = True
            num_sampled = sum(row.sampled is not None for row in event.rows)
            if num_sampled:
                self.run.counters.add_tokens(num_sampled, at_ns)
        elif isinstance(event, Failed):
            self._error = event.error
            self._end()
        self.run.events.set_ready(self.event, self._error)

    def read(self) -> Forwarded:
        """What it has found, once. Raises a refusal if there is nothing to read."""
        if self._error is not None:
            raise engine_refusal(self._error)
        if not self._is_computed:
            raise refusal(ErrorCode.UNAVAILABLE, "the pass is not computed yet", "Wait for its event.")
        if self._found is None:
            raise refusal(ErrorCode.NOT_FOUND, "what the pass has found has been read")
        found, self._found = self._found, None
        return found

    def commit(self, path: Sequence[int]) -> None:
        """Append the tokens of a path to the context. Raises a refusal, with nothing changed, if it is none."""
        if self._error is not None:
            raise engine_refusal(self._error)
        if self._has_ended:
            raise refusal(ErrorCode.NOT_FOUND, "the pass was committed or discarded before")
        if not self._is_computed:
            raise refusal(ErrorCode.UNAVAILABLE, "the pass is not computed yet", "Wait for its event.")
        last = -1
        for index, row in enumerate(path):
            if not 0 <= row < len(self._token_ids) or self._parent(row) != last:
                before = f"path[{index - 1}]" if index else "the context's last token"
                message = f"path[{index}] is no token of the pass, of {len(self._token_ids):,}, that follows {before}"
                raise invalid_argument(message, "A path begins after the context's last token and follows the parents.")
            last = row
        positions = None if self._positions is None else [self._positions[row] for row in path]
        self.run.submit(CommitForward(self._context.context_id, tuple(path)))
        self._context.take_in([self._token_ids[row] for row in path], positions)
        self._end()

    def discard(self) -> None:
        """Forget it. No effect if it has ended."""
        if not self._has_ended:
            self.run.submit(DiscardForward(self._context.context_id))
            self._end_early(_DISCARDED)

    def give_up(self) -> None:
        """Take in that the context is freed, after which the engine has nothing more to say."""
        self._end_early(_FREED)

    def drop(self) -> None:
        """Free it, and forget it."""
        self.discard()
        self._found = None
        self.run.events.drop(self.event)
        self.run.counters.num_passes -= 1

    def _parent(self, row: int) -> int:
        return row - 1 if self._parents is None else self._parents[row]

    def _end_early(self, error: EngineError) -> None:
        """End it; if it is not computed, whoever waits for that learns why it will not be."""
        if not self._is_computed:
            self._error = error
            self.run.events.set_ready(self.event, error)
        self._end()

    def _end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self.run.link.unregister(self._operation_id)
            self._context.end_forward()
