"""A stepped generation as the host sees it: an answer, an outcome, the next answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from tartlet.runtime.context import ContextState
from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.refusal import engine_refusal, refusal
from tartlet_engine.api import (
    AnswerStep,
    CancelGeneration,
    Command,
    EngineError,
    ErrorCode,
    Event,
    Failed,
    Finished,
    ForkSteps,
    Generate,
    Sampling,
    StepAnswer,
    Stepped,
    StepRefused,
    Stop,
)

if TYPE_CHECKING:
    from tartlet.runtime.run_state import RunState

_OWN_WORK = "an answer to its steps"
_ENDED_HINT = "Look at the finish of each outcome; begin others to go on."
_STOPPED = EngineError(ErrorCode.CANCELLED, "the steps were stopped")


class StepOutcome(NamedTuple):
    """What a step has done; with the end, if it was the last."""

    stepped: Stepped
    finished: Finished | None


class StepsState:
    """One stepped generation of a run. Lives on the executor's thread.

    Its event is ready while there is something to read: what the answered step has done, why not, or the end.
    """

    def __init__(self, context: ContextState, generation_id: int, command: Command) -> None:
        """Begin on a context by a command to the engine: see `start` and `fork`."""
        self.run: RunState = context.run
        self.context = context
        self.event = self.run.events.add(own_work=_OWN_WORK)
        self.is_cancelled = False
        self.is_answered = False  # and its outcome has not come
        self._generation_id = generation_id
        self._num_steps = 0  # that have been answered
        self._stepped: Stepped | None = None  # has come, and has not been read
        self._finished: Finished | None = None
        self._refused: EngineError | None = None  # why the last answer was, until that is read
        self._error: EngineError | None = None  # why it has ended
        self._is_dropped = False
        self._waits_since_ns: int | None = time.monotonic_ns()  # for an answer; None: it does not, or nobody counts
        context.generation = self
        self.run.counters.begin_generation(context.length)
        self.run.link.register(generation_id, self)
        self.run.submit(command)
        self._check_time()

    @classmethod
    def start(
        cls,
        context: ContextState,
        sampling: Sampling,
        stop: Stop,
        *,
        num_logprobs: int | None = None,
        constraint_id: int | None = None,
        mask_id: int | None = None,
    ) -> StepsState:
        """Begin at the end of a context."""
        generation_id = context.run.link.new_id()
        what = num_logprobs, constraint_id, mask_id
        return cls(
            context, generation_id, Generate(generation_id, context.context_id, sampling, stop, *what, stepped=True)
        )

    def fork(self, seed: int) -> tuple[ContextState, StepsState]:
        """Fork the context, and go on there as well. Raises a refusal while a step is carried out, or after the end."""
        self._require_going_on()
        if self.is_answered:
            raise refusal(ErrorCode.UNAVAILABLE, "a step is being carried out", "Fork after its outcome.")
        context = self.context.copy()
        self.run.counters.forks += 1
        generation_id = self.run.link.new_id()
        command = ForkSteps(self._generation_id, context.context_id, generation_id, seed)
        return context, StepsState(context, generation_id, command)

    def answer(self, answer: StepAnswer) -> None:
        """Say what the next step does. Raises a refusal before the last outcome has been read, or after the end."""
        self._require_going_on()
        if self.is_answered or self._stepped is not None or self._refused is not None:
            hint = "Wait for its event and read its outcome first."
            raise refusal(ErrorCode.UNAVAILABLE, "the outcome of the step before this has not been read", hint)
        self._note_waited()
        self._num_steps += 1
        self.is_answered = True
        self.event.own_work = ""
        self.event.status = EventStatus.PENDING  # it may have failed a wait in which nobody would have answered
        self.run.submit(AnswerStep(self._generation_id, answer))

    def read(self) -> StepOutcome:
        """What the answered step has done, once. Raises a refusal if it was refused, or if there is nothing to read."""
        stepped, self._stepped = self._stepped, None
        if stepped is not None:
            self._await_answer()
            return StepOutcome(stepped, self._finished)
        if self._error is not None:
            raise engine_refusal(self._error)
        if self._refused is not None:
            refused, self._refused = self._refused, None
            self._await_answer()
            raise engine_refusal(refused)
        if self._finished is not None:
            raise refusal(ErrorCode.NOT_FOUND, "the steps have ended, and the last outcome has been read")
        raise refusal(ErrorCode.UNAVAILABLE, "there is no outcome yet", "Answer, then wait for the event.")

    def hold(self) -> None:
        """Do not count the time until the next answer."""
        self._note_waited()

    def stop(self) -> None:
        """End it. No effect if it has ended."""
        if self._finished is None and not self.is_cancelled:
            self.is_cancelled = True
            self.run.submit(CancelGeneration(self._generation_id))

    def drop(self) -> None:
        """End it; what still comes only concerns the context."""
        self._is_dropped = True
        self.run.events.drop(self.event)
        self.stop()

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in what the engine says of it."""
        if isinstance(event, Stepped):
            self._stepped = event
            self.context.take_step(event.backtrack, event.token_ids)
            num_replaced = event.sampled is not None and event.token_ids[:1] != (event.sampled,)
            self.run.counters.add_tokens(len(event.token_ids) + num_replaced, at_ns)
            if event.finish_reason is None:  # else the end comes with it
                self._tell()
        elif isinstance(event, StepRefused):
            self._refused = event.error
            self._tell()
        elif isinstance(event, Finished):
            if self._stepped is None and self._error is None:
                self._error = _STOPPED
            self._end(event)
        elif isinstance(event, Failed):
            self._error = event.error
            self._end(None)

    def _tell(self) -> None:
        """Let the program know that the step is done, and count the time until its next answer."""
        self.is_answered = False
        self._waits_since_ns = time.monotonic_ns()
        if not self._is_dropped:
            self.run.events.set_ready(self.event, self._error)

    def _end(self, finished: Finished | None) -> None:
        self._finished = finished
        self._tell()
        self._waits_since_ns = None
        self.run.link.unregister(self._generation_id)
        self.run.counters.end_generation(finished.usage if finished else None)
        self.context.end_generation()

    def _await_answer(self) -> None:
        """Something has been read: now there is nothing more, before the next answer."""
        has_ended = self._finished is not None or self._error is not None
        self.event.status = EventStatus.SPENT if has_ended else EventStatus.PENDING
        self.event.own_work = _OWN_WORK

    def _require_going_on(self) -> None:
        if self._error is not None:
            raise engine_refusal(self._error)
        if self.is_cancelled:
            raise engine_refusal(_STOPPED)
        if self._finished is not None:
            raise refusal(ErrorCode.NOT_FOUND, f"the steps have ended: {self._finished.reason.value}", _ENDED_HINT)

    # ---- Lateness ----

    def _note_waited(self) -> None:
        """Stop to count the time that the program takes to answer."""
        if self._waits_since_ns is not None:
            self.run.counters.note_step(time.monotonic_ns() - self._waits_since_ns)
            self._waits_since_ns = None

    def _check_time(self) -> None:
        """End it if its program is late, else look again when it could be."""
        limit_ms = self.run.limits.max_step_ms
        if limit_ms is None or self._finished is not None or self._error is not None or self._is_dropped:
            return
        since_ns, now_ns = self._waits_since_ns, time.monotonic_ns()
        if since_ns is None or now_ns < since_ns + limit_ms * 1_000_000:
            deadline_ns = (now_ns if since_ns is None else since_ns) + limit_ms * 1_000_000
            self.run.events.call_at(self.event, deadline_ns, self._check_time)
            return
        self._note_waited()
        self._error = EngineError(
            ErrorCode.DEADLINE_EXCEEDED,
            f"step {self._num_steps + 1:,} was not answered within {limit_ms:,} ms (max_step_ms)",
            "Answer sooner, or say that the program waits for something else (in Python: steps.wait).",
        )
        self.stop()
        self.run.events.set_ready(self.event, self._error)
        self.run.wake()
