"""How long a step waits for answers that are about to come.

Programs that think for longer than a forward pass takes, and answer one after the other, would each be in a batch of a
few, and a batch of a few takes nearly as long as one of all. So a step waits for those that answered soon the last time
and are due. Only what is of one tenant waits for its programs, and not for longer than the step would take that it
spares: what is lost if they do not answer is less than what is won if they do.
"""

from __future__ import annotations

from collections.abc import Iterable

from tartlet_engine.generation import Generation

MOST_NS = 10_000_000
"""Of waiting before a step."""

SLACK_NS = 2_000_000
"""A program may take so much longer than twice what it took the last time, before it is given up."""


class Patience:
    """Whom the next step waits for, and until when. Times are of `time.monotonic_ns`. On the engine's thread."""

    def __init__(self) -> None:
        """Wait for nobody."""
        self.deadline_ns = 0
        self._awaited: dict[Generation, None] = {}
        self._last_step_ns = 0

    def note_step(self, step_ns: int) -> None:
        """Note how long a step has taken: one that is spared would take about as long."""
        self._last_step_ns = step_ns

    def begin(self, generations: Iterable[Generation], now_ns: int) -> None:
        """Choose whom to wait for, of stepped generations that have no answer."""
        latest_ns = now_ns + min(self._last_step_ns, MOST_NS)
        self.deadline_ns = now_ns
        self._awaited.clear()
        for generation in generations:
            steps = generation.steps
            if steps is None or steps.told_ns is None or steps.thought_ns is None:
                continue
            given_up_ns = steps.told_ns + 2 * steps.thought_ns + SLACK_NS
            if steps.told_ns + steps.thought_ns <= latest_ns and now_ns < given_up_ns:
                self._awaited[generation] = None
                self.deadline_ns = max(self.deadline_ns, min(given_up_ns, latest_ns))

    def answered(self, generation: Generation, arrived_ns: int) -> None:
        """Take note of an answer, which was submitted then."""
        steps = generation.steps
        assert steps is not None
        if steps.told_ns is not None:
            steps.thought_ns = max(0, arrived_ns - steps.told_ns)
        self._awaited.pop(generation, None)

    @property
    def is_awaiting(self) -> bool:
        """Tell whether somebody is still to answer."""
        while self._awaited:
            generation = next(iter(self._awaited))
            if generation.sequence.generation is generation:
                return True
            del self._awaited[generation]  # it has ended
        return False

    def end(self) -> None:
        """Wait for nobody any more."""
        self._awaited.clear()
