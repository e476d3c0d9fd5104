"""One sequence of a generation that a controller steers: what it is told of it, and what has not been read yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tartlet.runtime.context import ContextState
from tartlet.runtime.event_table import Event, EventStatus
from tartlet_engine.api import (
    AnswerStep,
    CancelGeneration,
    EngineError,
    Failed,
    Finished,
    FinishReason,
    ForkSteps,
    PositionLogprobs,
    StepAnswer,
    Stepped,
    StepRefused,
)
from tartlet_engine.api import Event as EngineEvent

if TYPE_CHECKING:
    from tartlet.runtime.controlled import ControlledGeneration


class SequenceChunk:
    """What a sequence has produced since it was last read: what is taken back first, and what is added then."""

    __slots__ = ("finish", "logprobs", "text", "text_backtrack", "token_backtrack", "token_ids")

    def __init__(self, text: str = "", token_ids: Sequence[int] = ()) -> None:
        self.text_backtrack = 0
        self.text = text
        self.token_backtrack = 0
        self.token_ids = list(token_ids)
        self.logprobs: list[PositionLogprobs] = []
        self.finish: Finished | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        nothing = not (self.text or self.token_ids or self.text_backtrack or self.token_backtrack)
        return nothing and self.finish is None

    def add(self, step: Stepped, num_generated: int) -> None:
        """Add a step, before which the sequence had generated so many tokens: more cannot be taken back."""
        if step.text_backtrack:
            kept = len(self.text) - step.text_backtrack
            self.text_backtrack += max(0, -kept)
            self.text = self.text[: max(0, kept)]
        if step.backtrack:
            num_back = min(step.backtrack, num_generated)
            kept = len(self.token_ids) - num_back
            self.token_backtrack += max(0, -kept)
            del self.token_ids[max(0, kept) :]
        self.text += step.text
        self.token_ids += step.token_ids


class ControlledSequence:
    """A sequence with a stepped generation of the engine's on a context. Lives on the executor's thread."""

    def __init__(
        self,
        owner: ControlledGeneration,
        number: int,
        context: ContextState,
        text: str = "",
        token_ids: Sequence[int] = (),
    ) -> None:
        """Begin with what its parent had generated before it forked."""
        self.owner = owner
        self.number = number
        self.context = context
        self.generation_id = context.run.link.new_id()
        self.text = text  # all of the generation's, for forks
        self.token_ids = list(token_ids)
        self.unread = SequenceChunk(text, token_ids)
        self.finish: Finished | None = None
        self.error: EngineError | None = None
        self.is_heard = False  # the controller knows that it has ended
        self.siblings: Sequence[int] = ()
        self._step: Stepped | None = None
        self._refused: EngineError | None = None
        self._is_asked = True  # the controller is to decide on it
        self.num_refused = 0  # decisions in a row
        self._awaited: Sequence[Event] | None = None
        self._end_reason: FinishReason | None = None  # why it was cancelled
        context.run.link.register(self.generation_id, self)

    @property
    def run(self) -> ControlledGeneration:
        """Who is woken when something has happened to it."""
        return self.owner

    @property
    def has_ended(self) -> bool:
        """Whether the engine has ended it."""
        return self.finish is not None or self.error is not None

    @property
    def has_news(self) -> bool:
        """Whether the controller is to decide on it, or to hear of its end."""
        if self.has_ended:
            return not self.is_heard
        if self._awaited is not None:
            return any(event.status is EventStatus.READY for event in self._awaited)
        return self._is_asked

    @property
    def is_stuck(self) -> bool:
        """Whether it waits for what only the run can do, or for nothing that can happen."""
        if self.has_ended or self._awaited is None or self._end_reason is not None:
            return self.is_heard
        return all(event.status is EventStatus.SPENT or bool(event.own_work) for event in self._awaited)

    # ---- From the engine ----

    def handle(self, event: EngineEvent, at_ns: int) -> None:
        """Take in what the engine says of it."""
        if isinstance(event, Stepped):
            self._add(event, at_ns)
        elif isinstance(event, StepRefused):
            self.refuse(event.error)
        elif isinstance(event, Finished):
            if self._end_reason is not None and event.reason is FinishReason.CANCELLED:
                event = Finished(event.generation_id, self._end_reason, event.usage, event.stop_string)
            self.finish = self.unread.finish = event
            self._end(event)
        elif isinstance(event, Failed):
            self.error = event.error
            self._end(None)

    def _add(self, step: Stepped, at_ns: int) -> None:
        self._step, self._is_asked, self.num_refused = step, True, 0
        self.context.take_step(step.backtrack, step.token_ids)
        num_counted = len(step.token_ids) + (step.sampled is not None and step.sampled not in step.token_ids[:1])
        if num_counted:
            self.context.run.counters.add_tokens(num_counted, at_ns)
        self.unread.add(step, len(self.token_ids))
        if step.logprobs is not None:
            self.unread.logprobs.append(step.logprobs)
        if step.text_backtrack:
            self.text = self.text[: -step.text_backtrack]
        if step.backtrack:
            del self.token_ids[max(0, len(self.token_ids) - step.backtrack) :]
        self.text += step.text
        self.token_ids += step.token_ids

    def _end(self, finished: Finished | None) -> None:
        run = self.context.run
        run.link.unregister(self.generation_id)
        run.counters.end_generation(finished.usage if finished else None)
        self._awaited = None
        self.is_heard = self._end_reason is FinishReason.STOPPED  # it knows
        self.owner.note_end(self)

    # ---- To the controller ----

    def take_news(self) -> tuple[Stepped | None, Sequence[int], EngineError | None]:
        """What happened in the last step, the siblings after a fork, and why the last decision was refused."""
        news = self._step, self.siblings, self._refused
        self._step, self.siblings, self._refused = None, (), None
        self._is_asked, self._awaited = False, None
        return news

    # ---- What it decides ----

    def answer(self, answer: StepAnswer) -> None:
        """Let the engine carry out a step."""
        self.context.run.submit(AnswerStep(self.generation_id, answer))

    def fork(self, number: int) -> ControlledSequence:
        """A sequence that goes on from here as well, and has no answer yet."""
        run = self.context.run
        child = ControlledSequence(self.owner, number, self.context.copy(), self.text, self.token_ids)
        run.counters.forks += 1
        run.counters.begin_generation(child.context.length)
        run.submit(ForkSteps(self.generation_id, child.context.context_id, child.generation_id, run.draw_seed()))
        child._is_asked = False
        return child

    def wait(self, events: Sequence[Event]) -> None:
        """Give up its place until one of the controller's events is ready."""
        self._awaited = events

    def refuse(self, error: EngineError) -> None:
        """Ask the controller again, since its decision cannot be carried out."""
        self._refused, self._is_asked = error, True
        self.num_refused += 1

    def stop(self, reason: FinishReason | None) -> None:
        """End it with what it has, for that reason; None: as cancelled. No effect if it has ended."""
        if not self.has_ended:
            self._end_reason = reason
            self._awaited = None
            self.context.run.submit(CancelGeneration(self.generation_id))
