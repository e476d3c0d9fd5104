"""What the program side waits for: generations, flushes and lookaheads. How they begin and end. Pure Python.

Every ending goes through here, so that each is told of exactly once, and none leaves a sequence behind that nobody
waits for. Events collect in `events` until the engine delivers them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tartlet_engine.accounts import RunAccount, RunLimitError
from tartlet_engine.api import (
    Chunk,
    Done,
    EngineError,
    ErrorCode,
    Event,
    Failed,
    Finished,
    FinishReason,
    LimitReached,
)
from tartlet_engine.command_error import CommandError
from tartlet_engine.contexts import ContextTable
from tartlet_engine.generation import Generation
from tartlet_engine.lookahead import LAST_TOKEN, Lookahead
from tartlet_engine.sequence import Flush, Sequence

if TYPE_CHECKING:
    from torch import Tensor

_log = logging.getLogger("tartlet_engine")


class Demands:
    """The generations, flushes and lookaheads of all contexts. Not thread-safe."""

    def __init__(self, contexts: ContextTable) -> None:
        """Start with none."""
        self._contexts = contexts
        self.generations: dict[int, Generation] = {}
        self.events: list[Event] = []

    def begin(self, generation: Generation) -> None:
        """Let a generation run on its context, which must be idle."""
        sequence = generation.sequence
        sequence.generation = generation
        self.generations[generation.generation_id] = generation
        sequence.demand_logits()
        self._contexts.activate(sequence)

    def complete_flushes(self, sequence: Sequence) -> None:
        """Answer the flushes whose tokens are computed by now."""
        done = [f for f in sequence.flushes if f.target_len <= sequence.num_computed and f.room is None]
        self._end_flushes(sequence, done)

    def complete_move(self, sequence: Sequence) -> None:
        """Answer the flush that waited for room, which is there now; none, if it has ended meanwhile."""
        self._end_flushes(sequence, [flush for flush in sequence.flushes if flush.room is not None])

    def _end_flushes(self, sequence: Sequence, done: list[Flush]) -> None:
        if done:
            sequence.flushes = [flush for flush in sequence.flushes if flush not in done]
            self._contexts.settle(sequence)
        for flush in done:
            if flush.then is not None:
                flush.then()
            elif flush.operation_id is not None:
                self.events.append(Done(flush.operation_id))

    def look_ahead(self, sequence: Sequence, lookahead: Lookahead) -> None:
        """Let tokens be computed that follow a context's own, which must have none that are already."""
        assert sequence.lookahead is None, f"context {sequence.context_id} looks ahead already"
        if LAST_TOKEN in lookahead.rows:
            sequence.demand_logits()
        sequence.lookahead = lookahead
        self._contexts.activate(sequence)
        self.complete_lookahead(sequence)

    def hand_over(self, sequence: Sequence, rows: list[int], logits: Tensor) -> None:
        """Let logits float32[R, V] of rows of a lookahead be taken. What goes wrong with it ends this sequence's."""
        try:
            if sequence.lookahead is not None:
                sequence.lookahead.hand_over(rows, logits)
        except RunLimitError as breach:
            self.stop_run(breach)
        except CommandError as error:
            self.fail(sequence, error.error)
        except Exception as error:
            _log.exception("context=%d rows=%d cannot be taken", sequence.context_id, len(rows))
            message = f"what was computed cannot be evaluated: {type(error).__name__}: {error}"
            self.fail(sequence, EngineError(ErrorCode.INTERNAL, message))

    def complete_lookahead(self, sequence: Sequence) -> None:
        """End what is demanded of a lookahead, if all of it is computed by now."""
        if (lookahead := sequence.lookahead) is None or lookahead.is_done:
            return
        if sequence.logits is not None and (rows := lookahead.rows_between(LAST_TOKEN, LAST_TOKEN + 1)):
            self.hand_over(sequence, rows, sequence.logits.unsqueeze(0))
        if sequence.lookahead is lookahead and sequence.link is None and sequence.num_to_compute == 0:
            lookahead.is_done = True
            self._contexts.settle(sequence)
            if lookahead.then is not None:
                lookahead.then()

    def discard_lookahead(self, sequence: Sequence) -> None:
        """End a sequence's lookahead, whether it is computed yet or not, without an event."""
        sequence.discard()
        self._contexts.settle(sequence)

    def finish(self, generation: Generation, reason: FinishReason, stop_string: str | None = None) -> None:
        """End a generation with `Finished`."""
        usage = generation.usage(time.monotonic_ns())
        self.events.append(Finished(generation.generation_id, reason, usage, stop_string))
        self._detach(generation)
        self._contexts.settle(generation.sequence)

    def cancel(self, generation_id: int) -> None:
        """End a generation with what it has. No effect if it has ended."""
        generation = self.generations.get(generation_id)
        if generation is not None:
            if generation.steps is None and (text := generation.rest_of_text()):
                self.events.append(Chunk(generation_id, (), text))
            self.finish(generation, FinishReason.CANCELLED)

    def fail(self, sequence: Sequence, error: EngineError) -> None:
        """End everything that waits for this sequence with `Failed`."""
        if sequence.generation is not None:
            self.events.append(Failed(sequence.generation.generation_id, error))
        for flush in sequence.flushes:
            if flush.operation_id is not None:
                self.events.append(Failed(flush.operation_id, error))
        lookahead = sequence.lookahead
        if lookahead is not None and not lookahead.is_done and lookahead.operation_id is not None:
            self.events.append(Failed(lookahead.operation_id, error))
        self.drop(sequence)

    def drop(self, sequence: Sequence) -> None:
        """End everything that waits for this sequence, without events."""
        if sequence.generation is not None:
            self._detach(sequence.generation)
        sequence.flushes.clear()
        if sequence.is_looking_ahead:
            sequence.discard()
        self._contexts.settle(sequence)

    def stop_run(self, breach: RunLimitError) -> None:
        """End everything that the run waits for with one `LimitReached`."""
        breach.account.is_stopped = True
        self.events.append(LimitReached(breach.account.run_id, breach.limit, breach.used, breach.allowed))
        for sequence in self._contexts.of_run(breach.account):
            self.drop(sequence)

    def free_some(self, account: RunAccount, is_over: Callable[[], bool]) -> bool:
        """Free contexts of a run that is about to be closed, until `is_over`. Tells whether none is left.

        The first call ends everything that the run waits for. Cost: one pass over all contexts, and what is freed.
        """
        sequences = self._contexts.of_run(account)
        if not account.is_closing:
            account.is_closing = account.is_stopped = True
            for sequence in sequences:
                self.drop(sequence)
        for num_freed, sequence in enumerate(reversed(sequences), 1):
            self.free(sequence)
            if num_freed < len(sequences) and is_over():
                return False
        return True

    def close_run(self, account: RunAccount) -> None:
        """Free all contexts of a run, without events."""
        # Forks first: a fork that waits need not look for another source, if that goes away after it.
        for sequence in reversed(self._contexts.of_run(account)):
            self.free(sequence)

    def free(self, sequence: Sequence) -> None:
        """Free one context, without events."""
        self.drop(sequence)
        self._contexts.free(sequence)

    def discard(self, sequence: Sequence) -> None:
        """Free one context, unless that has been done, without events."""
        if self._contexts.sequences.get(sequence.context_id) is sequence:
            self.free(sequence)

    def _detach(self, generation: Generation) -> None:
        generation.sequence.generation = None
        generation.sequence.discard()
        del self.generations[generation.generation_id]

    def check_integrity(self) -> None:
        """Raise AssertionError unless exactly the generations known here run on contexts."""
        running = {
            sequence.generation.generation_id: sequence.generation
            for sequence in self._contexts.sequences.values()
            if sequence.generation is not None
        }
        assert running == self.generations
