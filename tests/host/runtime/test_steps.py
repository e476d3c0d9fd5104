"""Stepped generations on the host, with a link that only notes what is submitted."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from tartlet.bindings import contexts
from tartlet.limits import Limits
from tartlet.runtime.context import ContextState
from tartlet.runtime.counters import Counters
from tartlet.runtime.event_table import EventStatus, EventTable
from tartlet.runtime.handles import HandleTable
from tartlet.runtime.steps import StepsState
from tartlet.wasm.host_function import Err
from tartlet_engine.api import (
    AnswerStep,
    CancelGeneration,
    EngineError,
    ErrorCode,
    Failed,
    Finished,
    FinishReason,
    ForkSteps,
    Sampling,
    StepAnswer,
    Stepped,
    StepRefused,
    Stop,
    Usage,
)

USAGE = Usage(3, 3, 1, 1, 0, 1, 2)


class Clock:
    """Timers that ring when the test lets time pass."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.actions: list[tuple[int, Any]] = []

    def monotonic_ns(self) -> int:
        return self.now_ns

    def at(self, deadline_ns: int, action: Any) -> Any:
        entry = (deadline_ns, action)
        self.actions.append(entry)
        return SimpleNamespace(cancel=lambda: self.actions.remove(entry))

    def advance(self, num_ms: int) -> None:
        self.now_ns += num_ms * 1_000_000
        due = [entry for entry in self.actions if entry[0] <= self.now_ns]
        self.actions = [entry for entry in self.actions if entry not in due]
        for _, action in due:
            action()


class World:
    """A run whose commands only collect."""

    def __init__(self, clock: Clock) -> None:
        self.submitted: list[Any] = []
        self.model: Any = SimpleNamespace(info=SimpleNamespace(context_len=100, name="fake", page_size=16))
        ids = itertools.count(1)
        nothing: Any = lambda *_: None  # noqa: E731
        link = SimpleNamespace(new_id=lambda: next(ids), register=nothing, unregister=nothing, catch_up=nothing)
        self.run: Any = SimpleNamespace(
            link=link,
            engine_id=0,
            submit=self.submitted.append,
            events=EventTable(HandleTable(None), clock, lambda action: None),
            counters=Counters(None),
            limits=Limits(),
            wake=lambda: None,
            handles=HandleTable(None),
        )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("tartlet.runtime.steps.time", clock)
    return clock


@pytest.fixture
def world(clock: Clock) -> World:
    return World(clock)


@pytest.fixture
def steps(world: World) -> StepsState:
    context = ContextState.create(world.run, world.model)
    context.append([1, 2, 3])
    return StepsState.start(context, Sampling(seed=0), Stop())


def told(steps: StepsState, event: Any) -> None:
    steps.handle(event, 1)


def code(action: Any) -> str:
    with pytest.raises(Err) as caught:
        action()
    return str(caught.value.value["code"])


def test_an_answer_and_its_outcome(steps: StepsState, world: Any) -> None:
    """The event is ready from the outcome until that is read; the context has what was really appended."""
    steps.answer(StepAnswer())
    assert steps.event.status is EventStatus.PENDING
    told(steps, Stepped(steps._generation_id, (7, 8), "x", 6, 1))
    assert steps.event.status is EventStatus.READY

    assert steps.read().stepped.token_ids == (7, 8)
    assert steps.context.tokens.tolist() == [1, 2, 7, 8]
    assert steps.event.status is EventStatus.PENDING
    assert world.run.counters.generated_tokens == 3  # the sampled one was replaced
    assert isinstance(world.submitted[-1], AnswerStep)


def test_the_end_comes_with_the_last_outcome(steps: StepsState) -> None:
    """The outcome waits for the usage, and the context is idle then."""
    steps.answer(StepAnswer())
    told(steps, Stepped(steps._generation_id, (7,), "x", 7, finish_reason=FinishReason.LENGTH))
    assert steps.event.status is EventStatus.PENDING
    told(steps, Finished(steps._generation_id, FinishReason.LENGTH, USAGE))

    assert steps.read().finished is not None
    assert steps.event.status is EventStatus.SPENT
    assert steps.context.generation is None
    assert code(steps.read) == "not-found"
    assert code(lambda: steps.answer(StepAnswer())) == "not-found"


def test_a_refused_answer_can_be_followed_by_another(steps: StepsState) -> None:
    """The refusal is read once."""
    steps.answer(StepAnswer())
    told(steps, StepRefused(steps._generation_id, EngineError(ErrorCode.CONTEXT_OVERFLOW, "full")))

    assert code(lambda: steps.answer(StepAnswer())) == "unavailable"
    assert code(steps.read) == "context-overflow"
    steps.answer(StepAnswer())


def test_a_failure_ends_it(steps: StepsState) -> None:
    """Every call says why, from then on."""
    steps.answer(StepAnswer())
    told(steps, Failed(steps._generation_id, EngineError(ErrorCode.KV_EXHAUSTED, "full")))

    assert [code(steps.read), code(lambda: steps.answer(StepAnswer())), code(lambda: steps.fork(0))] == [
        "kv-exhausted"
    ] * 3
    assert steps.context.generation is None


def test_a_fork_tells_the_engine_of_both(steps: StepsState, world: Any) -> None:
    """The child's context has the tokens that the host knows of, without a command of its own."""
    context, child = steps.fork(5)

    assert context.tokens.tolist() == [1, 2, 3]
    assert isinstance(world.submitted[-1], ForkSteps)
    assert world.submitted[-1].child_context_id == context.context_id
    assert child.context is context
    assert world.run.counters.forks == 1


def test_nothing_is_forked_while_a_step_is_carried_out(steps: StepsState, world: World) -> None:
    """The engine may have dropped tokens that the host still knows of."""
    fiber: Any = SimpleNamespace(state=world.run)
    number = world.run.handles.add(steps.context)
    steps.answer(StepAnswer())

    assert code(lambda: steps.fork(0)) == "unavailable"
    assert code(lambda: contexts.fork(fiber, number)) == "unavailable"
    told(steps, Stepped(steps._generation_id, (), ""))
    assert contexts.fork(fiber, number) != number


def test_lateness_is_counted_from_outcome_to_answer(world: Any, clock: Any) -> None:
    """Neither the time of a step nor that after `hold` counts; then the limit ends it, by name."""
    world.run.limits = Limits(max_step_ms=100)
    context = ContextState.create(world.run, world.model)
    context.append([1])
    steps = StepsState.start(context, Sampling(seed=0), Stop())
    steps.answer(StepAnswer())
    clock.advance(1000)
    told(steps, Stepped(steps._generation_id, (7,), "x", 7))
    steps.read()
    clock.advance(60)
    steps.hold()
    clock.advance(1000)
    steps.answer(StepAnswer())
    told(steps, Stepped(steps._generation_id, (7,), "x", 7))
    steps.read()
    assert not steps.is_cancelled
    clock.advance(210)

    assert code(lambda: steps.answer(StepAnswer())) == "deadline-exceeded"
    assert isinstance(world.submitted[-1], CancelGeneration)
    assert world.run.counters.longest_step_ns >= 60_000_000
    told(steps, Finished(steps._generation_id, FinishReason.CANCELLED, USAGE))
    assert code(steps.read) == "deadline-exceeded"
