"""A matcher as a run deals with it: the engine goes through the constraint, and tells where it has come to."""

from __future__ import annotations

from tartlet.runtime.constraint import ConstraintState
from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.refusal import engine_refusal, invalid_argument, refusal
from tartlet_engine.api import (
    Command,
    EngineError,
    ErrorCode,
    Event,
    Failed,
    ForkMatcher,
    FreeMatcher,
    MatcherMoved,
    MoveMatcher,
    OpenMatcher,
)


class MatcherState:
    """One matcher of a run. Lives on the executor's thread. Its event is ready while it is known where it is."""

    def __init__(self, constraint: ConstraintState, parent: MatcherState | None = None) -> None:
        """Begin at the beginning of a constraint, or where another matcher of it is.

        Raises a refusal if the constraint is not compiled.
        """
        self.run = constraint.run
        self.constraint = constraint
        self.model = constraint.model
        self._length: int = 0 if parent is None else parent._length  # tokens gone through
        self._num_moves = 0
        self._moved: MatcherMoved | None = None
        self._error: EngineError | None = None
        self._matcher_id = self.run.link.new_id()
        begin: Command
        if parent is None:
            constraint_id = constraint.engine_id_for(constraint.model)
            begin = OpenMatcher(self._matcher_id, self.run.engine_id, constraint_id)
        else:
            begin = ForkMatcher(parent._matcher_id, self.run.engine_id, self._matcher_id)
        self.event = self.run.events.add()
        self.run.link.register(self._matcher_id, self)
        self.run.submit(begin)

    def place(self) -> MatcherMoved:
        """Where it is. Raises a refusal if that is not known yet, or if it failed."""
        self._require_alive()
        if self._moved is None:
            raise refusal(ErrorCode.UNAVAILABLE, "the matcher has not arrived yet", "Wait for its event.")
        return self._moved

    def move(self, num_back: int, token_ids: list[int]) -> None:
        """Go back over tokens, then on by others."""
        self._require_alive()
        self.model.check_tokens(token_ids)
        if num_back > self._length:
            raise invalid_argument(f"{num_back:,} tokens back; the matcher has gone through {self._length:,}")
        length = self._length - num_back + len(token_ids)
        if length > self.model.info.context_len:
            allowed = self.model.info.context_len
            message = f"the matcher would go through {length:,} tokens; {self.model.info.name} allows {allowed:,}"
            raise refusal(ErrorCode.CONTEXT_OVERFLOW, message)
        self._length = length
        self._num_moves += 1
        self._moved = None
        self.event.status = EventStatus.PENDING
        self.run.submit(MoveMatcher(self._matcher_id, self.run.engine_id, num_back, tuple(token_ids)))

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in where it has come to, unless it has been moved on since."""
        if isinstance(event, Failed):
            self._error = event.error
            self.run.events.set_ready(self.event, event.error)
        elif isinstance(event, MatcherMoved) and event.num_moves == self._num_moves:
            self._moved = event
            self.run.events.set_ready(self.event)

    def drop(self) -> None:
        """Free it."""
        self.run.link.unregister(self._matcher_id)
        self.run.events.drop(self.event)
        self.run.submit(FreeMatcher(self._matcher_id, self.run.engine_id))

    def _require_alive(self) -> None:
        if self._error is not None:
            raise engine_refusal(self._error)
