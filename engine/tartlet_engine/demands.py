"""What the program side waits for: generations and flushes. How they begin and how they end. Pure Python.

Every ending goes through here, so that each is told of exactly once, and none leaves a sequence behind that nobody
waits for. Events collect in `events` until the engine delivers them.
"""

from __future__ import annotations

import time

from tartlet_engine.accounts import RunAccount, RunLimitError
from tartlet_engine.api import (
    Chunk,
    Done,
    EngineError,
    Event,
    Failed,
    Finished,
    FinishReason,
    LimitReached,
)
from tartlet_engine.contexts import ContextTable
from tartlet_engine.generation import Generation
from tartlet_engine.sequence import Sequence


class Demands:
    """The generations and flushes of all contexts. Not thread-safe."""

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
        done = [flush for flush in sequence.flushes if flush.target_len <= sequence.num_computed]
        if done:
            sequence.flushes = [flush for flush in sequence.flushes if flush.target_len > sequence.num_computed]
            self._contexts.settle(sequence)
        for flush in done:
            if flush.then is not None:
                flush.then()
            elif flush.operation_id is not None:
                self.events.append(Done(flush.operation_id))

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
            if text := generation.rest_of_text():
                self.events.append(Chunk(generation_id, (), text))
            self.finish(generation, FinishReason.CANCELLED)

    def fail(self, sequence: Sequence, error: EngineError) -> None:
        """End everything that waits for this sequence with `Failed`."""
        if sequence.generation is not None:
            self.events.append(Failed(sequence.generation.generation_id, error))
        for flush in sequence.flushes:
            if flush.operation_id is not None:
                self.events.append(Failed(flush.operation_id, error))
        self.drop(sequence)

    def drop(self, sequence: Sequence) -> None:
        """End everything that waits for this sequence, without events."""
        if sequence.generation is not None:
            self._detach(sequence.generation)
        sequence.flushes.clear()
        self._contexts.settle(sequence)

    def stop_run(self, breach: RunLimitError) -> None:
        """End everything that the run waits for with one `LimitReached`."""
        breach.account.is_stopped = True
        self.events.append(LimitReached(breach.account.run_id, breach.limit, breach.used, breach.allowed))
        for sequence in self._contexts.of_run(breach.account):
            self.drop(sequence)

    def close_run(self, account: RunAccount) -> None:
        """Free all contexts of a run, without events."""
        # Forks first: a fork that waits need not look for another source, if that goes away after it.
        for sequence in reversed(self._contexts.of_run(account)):
            self.free(sequence)

    def free(self, sequence: Sequence) -> None:
        """Free one context, without events."""
        self.drop(sequence)
        self._contexts.free(sequence)

    def _detach(self, generation: Generation) -> None:
        generation.sequence.generation = None
        del self.generations[generation.generation_id]

    def check_integrity(self) -> None:
        """Raise AssertionError unless exactly the generations known here run on contexts."""
        running = {
            sequence.generation.generation_id: sequence.generation
            for sequence in self._contexts.sequences.values()
            if sequence.generation is not None
        }
        assert running == self.generations
