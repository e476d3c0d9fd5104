"""A generation that a controller steers: outcomes of one engine step in, one call of the controller, decisions out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tartlet.errors import TartletError
from tartlet.runtime.constraint import ConstraintState
from tartlet.runtime.context import ContextState
from tartlet.runtime.controlled_sequence import ControlledSequence, SequenceChunk
from tartlet.runtime.controller import ControllerState
from tartlet.runtime.decisions import Branches, Decision, Wait, outcome_record, to_decision
from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.mask import MaskState
from tartlet.runtime.program import Program
from tartlet.runtime.refusal import engine_refusal, refusal
from tartlet.wasm.host_function import Err
from tartlet_engine.api import EngineError, ErrorCode, FinishReason, Generate, Sampling, Stop

if TYPE_CHECKING:
    from tartlet.runtime.run_state import RunState


MAX_LOGPROBS = 20
MOST_REFUSED = 16
"""Decisions in a row on one sequence. Whoever does not look at what is refused would go on for ever."""


class Settings(NamedTuple):
    """How the generation is sampled, when it stops, and what its reader wants to know."""

    sampling: Sampling
    stop: Stop
    num_logprobs: int | None
    constraint: ConstraintState | None
    mask: MaskState | None
    interval_ns: int | None
    """Between announcements of chunks, at least. None: only the end is announced."""


class ControlledGeneration:
    """One generation of a run, and the controller that steers it. Lives on the executor's thread.

    Its event is ready while there is something to read: the end of all sequences, and if it streams, also what came at
    least an interval after the last read.
    """

    def __init__(self, context: ContextState, program: Program, config: str, settings: Settings) -> None:
        self._run: RunState = context.run
        self.is_cancelled = False
        self.event = self._run.events.add(own_work=f"the generation that the controller {program.name!r} steers")
        self._context = context
        self._settings = settings
        self._sequences: dict[int, ControlledSequence] = {}  # by number: those that run, and those that have ended
        self._next_number = 0
        self._num_controller_logprobs: int | None = None
        self._error: EngineError | None = None
        self._is_over = False  # the controller is done, and the reader knows
        self._is_read = False  # the last chunks have been read
        self._is_dropped = False
        self._due_ns = 0
        self._kept = [each for each in (settings.constraint, settings.mask) if each is not None]
        for kept in self._kept:
            kept.hold()
        context.generation = self
        self._run.controlled[self] = None
        self._controller = ControllerState(self._run, program, self._fail, self._look)
        self._run.add_controller(self._controller)
        self._controller.call("start", config, context.tokens.tolist(), then=self._start)

    # ---- For whoever started it ----

    def read(self) -> tuple[list[tuple[int, SequenceChunk]], bool]:
        """What has come since the last read, by sequence, and whether that was all.

        Raises a refusal if it failed, or after the last chunks.
        """
        if self._error is not None:
            raise engine_refusal(self._error)
        if self._is_read:
            raise refusal(ErrorCode.NOT_FOUND, "the generation has ended, and its last chunks have been read")
        chunks = []
        for sequence in self._sequences.values():
            if not sequence.unread.is_empty:
                chunks.append((sequence.number, sequence.unread))
                sequence.unread = SequenceChunk()
        self._is_read = self._is_over
        self.event.status = EventStatus.SPENT if self._is_read else EventStatus.PENDING
        if self._settings.interval_ns:
            self._due_ns = time.monotonic_ns() + self._settings.interval_ns
        return chunks, self._is_read

    def cancel(self) -> None:
        """End all sequences at the next step. No effect if it has ended."""
        if self._is_over or self.is_cancelled:
            return
        self.is_cancelled = True
        if not self._sequences:
            self._fail(EngineError(ErrorCode.CANCELLED, "the generation was cancelled before it began"))
        for sequence in self._sequences.values():
            sequence.stop(None)

    def drop(self) -> None:
        """Cancel it, and end the controller; what still comes is only appended to the context."""
        self._is_dropped = True
        self._run.events.drop(self.event)
        self._fail(EngineError(ErrorCode.CANCELLED, "the generation was dropped"))

    # ---- For the run ----

    @property
    def can_go_on(self) -> bool:
        """Whether it will do something by itself, or because of something outside of the run."""
        if self._controller.is_busy or not self._sequences or self._is_over:
            return True
        return not all(sequence.is_stuck for sequence in self._sequences.values())

    def end_as_deadlock(self) -> None:
        """End all sequences, which wait for what nobody is left to do."""
        for sequence in self._sequences.values():
            sequence.stop(FinishReason.DEADLOCK)

    def forget(self) -> None:
        """End the controller, and hear no more of the engine: the run is over, and the engine knows."""
        self._controller.close()
        self._run.link.unregister_run(self)

    @property
    def num_own_pages(self) -> int:
        """KV pages that its forks need besides those that they share."""
        return sum(each.context.num_own_pages for number, each in self._sequences.items() if number)

    # ---- One step after the other ----

    def wake(self) -> None:
        """Take in a step of the engine, all of whose events have been handled."""
        self._announce()
        self._look()

    def note_end(self, sequence: ControlledSequence) -> None:
        """Take in that the engine has ended a sequence."""
        if sequence.error is not None:
            self._fail(sequence.error)
        if sequence.number:
            sequence.context.drop()
        if self._is_over and all(each.has_ended for each in self._sequences.values()):
            self._context.end_generation()

    def _start(self, answer: dict[str, Any]) -> None:
        """Begin as the controller says."""
        try:
            if answer["prompt"] is not None:
                self._context.model.check_tokens(answer["prompt"], "prompt token")
                self._context.replace(answer["prompt"])
            self._context.check_generation()
        except Err as refused:
            self._fail(_as_engine_error(refused))
            return
        self._num_controller_logprobs = answer["log-probabilities"]
        if (self._num_controller_logprobs or 0) > MAX_LOGPROBS:
            self._controller.fail(f"its start asks for {self._num_controller_logprobs:,} log-probabilities")
            return
        wanted = [n for n in (self._num_controller_logprobs, self._settings.num_logprobs) if n is not None]
        sequence = self._add(lambda number: ControlledSequence(self, number, self._context))
        self._run.counters.begin_generation(self._context.length)
        settings = self._settings
        model = self._context.model
        self._run.submit(
            Generate(
                sequence.generation_id,
                self._context.context_id,
                settings.sampling,
                settings.stop,
                max(wanted) if wanted else None,
                None if settings.constraint is None else settings.constraint.engine_id_for(model),
                stepped=True,
                mask_id=None if settings.mask is None else settings.mask.engine_id_for(model),
            )
        )
        self._look()

    def _look(self) -> None:
        """Ask the controller about every sequence with news, unless it is still answering."""
        if self._is_over or self._controller.is_busy:
            return
        asked = [sequence for sequence in self._sequences.values() if sequence.has_news]
        if any(sequence.num_refused >= MOST_REFUSED for sequence in asked):
            self._controller.fail(
                f"{MOST_REFUSED} of its decisions in a row were refused; see `refused` of the outcome"
            )
        elif asked:
            outcomes = [outcome_record(sequence, self._num_controller_logprobs) for sequence in asked]
            self._controller.call("step", outcomes, then=lambda decisions: self._decide(asked, decisions))
        elif self._sequences and all(sequence.is_heard for sequence in self._sequences.values()):
            self._end(None)
        elif self._sequences and all(sequence.is_stuck for sequence in self._sequences.values()):
            self._run.events.look_for_deadlock()

    def _decide(self, asked: Sequence[ControlledSequence], records: Sequence[Any]) -> None:
        """Carry out what the controller has decided."""
        if len(records) != len(asked):
            message = f"its step answered with {len(records):,} decisions for {len(asked):,} sequences"
            self._controller.fail(message)
            return
        for sequence, record in zip(asked, records, strict=True):
            if sequence.is_heard or (sequence.has_ended and not sequence.has_news):
                continue
            try:
                self._carry_out(sequence, to_decision(record, self._controller, self._context.model))
            except Err as refused:
                self._refuse(sequence, _as_engine_error(refused), num_forks=len(record[1]) - 1)
            except TartletError as error:
                self._controller.fail(error.message)
                return
        self._look()

    def _carry_out(self, sequence: ControlledSequence, decision: Decision) -> None:
        if isinstance(decision, Wait):
            sequence.wait(decision.events)
        elif not decision.answers:
            sequence.stop(FinishReason.STOPPED)
        else:
            self._go_on(sequence, decision)

    def _go_on(self, sequence: ControlledSequence, branches: Branches) -> None:
        """Let a sequence go on, in several branches if there are several answers."""
        others = branches.answers[1:]
        num_live = sum(not each.has_ended for each in self._sequences.values())
        allowed = self._run.limits.max_branches
        if allowed is not None and others and num_live + len(others) > allowed:
            message = f"max_branches allows {allowed:,}, this would make it {num_live + len(others):,}"
            error = EngineError(ErrorCode.QUOTA_EXCEEDED, message, "Fork less, or stop some first.")
            self._refuse(sequence, error, num_forks=len(others))
            return
        children = [self._add(sequence.fork) for _ in others]
        if children:
            numbers = [sequence.number, *(child.number for child in children)]
            for each in (sequence, *children):
                each.siblings = numbers
        for each, answer in zip((sequence, *children), branches.answers, strict=True):
            each.answer(answer)

    def _refuse(self, sequence: ControlledSequence, error: EngineError, num_forks: int) -> None:
        """Ask again about a sequence; the numbers of forks that come to nothing are used up."""
        self._next_number += num_forks
        sequence.refuse(error)

    def _add(self, make: Callable[[int], ControlledSequence]) -> ControlledSequence:
        sequence = make(self._next_number)
        self._sequences[self._next_number] = sequence
        self._next_number += 1
        return sequence

    # ---- The end ----

    def _fail(self, error: EngineError) -> None:
        """End everything at once, with an error."""
        if not self._is_over:
            self._end(error)

    def _end(self, error: EngineError | None) -> None:
        """End the controller, and tell the reader."""
        self._is_over = self.is_cancelled = True
        self._error = error
        self._controller.close()
        for kept in self._kept:
            kept.drop()
        self._run.controlled.pop(self, None)
        for sequence in self._sequences.values():
            sequence.stop(None)
        if all(sequence.has_ended for sequence in self._sequences.values()):
            self._context.end_generation()
        if not self._is_dropped:
            self._run.events.set_ready(self.event, error)
            self._run.events.wake()
            self._run.events.look_for_deadlock()

    def _announce(self) -> None:
        """Mark the event as ready, if somebody wants to read what has come."""
        if self._settings.interval_ns is None or self._is_over or time.monotonic_ns() < self._due_ns:
            return
        if any(not sequence.unread.is_empty for sequence in self._sequences.values()):
            self._run.events.set_ready(self.event)
            self._run.events.wake()


def _as_engine_error(refused: Err) -> EngineError:
    record: Any = refused.value
    return EngineError(ErrorCode(record["code"]), record["message"], record["hint"])
