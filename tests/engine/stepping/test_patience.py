"""Whom a step waits for, and for how long."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tartlet_engine.api import (
    AnswerStep,
    AppendTokens,
    CloseRun,
    CreateContext,
    EngineConfig,
    Event,
    Generate,
    OpenRun,
    Sampling,
    StepAnswer,
    Stepped,
    Stop,
)
from tartlet_engine.engine import start_engine
from tartlet_engine.stepping import patience
from tartlet_engine.stepping.patience import MOST_NS, SLACK_NS, Patience

MS = 1_000_000
PROMPT = list(range(20, 30))


class Waiting:
    """A stepped generation, as far as patience concerns it: it was told of an outcome, and thinks."""

    def __init__(self, thought_ms: float | None, told_ms: float = 0) -> None:
        thought_ns = None if thought_ms is None else int(thought_ms * MS)
        self.steps = SimpleNamespace(told_ns=int(told_ms * MS), thought_ns=thought_ns)
        self.sequence = SimpleNamespace(generation=self)


def waits(*generations: Any, step_ms: float = 5, now_ms: float = 0) -> Patience:
    """What waits for the generations, after a step that took so long."""
    waiting = Patience()
    waiting.note_step(int(step_ms * MS))
    waiting.begin(generations, int(now_ms * MS))
    return waiting


def test_it_waits_for_those_that_are_due_until_all_have_answered() -> None:
    """Who answered soon the last time is waited for; the last answer ends that."""
    first, second = Waiting(1), Waiting(2)
    waiting = waits(first, second)
    assert waiting.is_awaiting
    assert waiting.deadline_ns == min(5 * MS, 4 * MS + SLACK_NS)

    waiting.answered(first, 1 * MS)  # type: ignore[arg-type]
    assert waiting.is_awaiting
    waiting.answered(second, 3 * MS)  # type: ignore[arg-type]
    assert not waiting.is_awaiting
    assert (first.steps.thought_ns, second.steps.thought_ns) == (1 * MS, 3 * MS)


@pytest.mark.parametrize(
    ("generation", "now_ms"),
    [
        (Waiting(None), 0),  # nothing is known of it
        (Waiting(6), 0),  # it takes longer than the step that would be spared
        (Waiting(1), 2 + SLACK_NS / MS),  # it is overdue
    ],
)
def test_it_does_not_wait_for_those_that_are_not_due(generation: Any, now_ms: float) -> None:
    """Programs that think for long, or longer than the last time, fall out of the batch; so do new ones."""
    assert not waits(generation, now_ms=now_ms).is_awaiting


def test_it_waits_no_longer_than_a_step_and_never_long() -> None:
    """The deadline is as far away as a step takes, at most; and has a bound, however long steps take."""
    assert waits(Waiting(1), step_ms=1).deadline_ns == 1 * MS
    assert waits(Waiting(9), step_ms=1000).deadline_ns == MOST_NS
    assert not waits(Waiting(1), step_ms=0.5).is_awaiting


def test_who_has_ended_is_not_waited_for() -> None:
    """A generation that is cancelled while it is waited for does not hold up the others."""
    generation = Waiting(1)
    waiting = waits(generation)
    generation.sequence.generation = None
    assert not waiting.is_awaiting


def think_soon(driver: Any, *generations: int) -> None:
    """Let it look as if all had answered soon, and steps took long."""
    for generation_id in generations:
        driver.core._demands.generations[generation_id].steps.thought_ns = 3600 * 1000 * MS
    driver.core._stepper.stepped.patience.note_step(3600 * 1000 * MS)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bound but the steps' own."""
    monkeypatch.setattr(patience, "MOST_NS", 3600 * 1000 * MS)
    monkeypatch.setattr(patience, "SLACK_NS", 3600 * 1000 * MS)


def test_programs_of_one_tenant_are_waited_for_and_nobody_elses(hash_engine: Any, endless: None) -> None:
    """One answers, and the step waits for the other, if that is the tenant's, too."""
    driver = hash_engine()
    own, other, stranger = [
        driver.steps(driver.create(driver.open_run(tenant=tenant), PROMPT)) for tenant in ("a", "a", "b")
    ]
    for steps in (own, other, stranger):
        driver.next(steps)
    driver.settle()
    driver.core.begin_waiting()
    assert driver.core.wait_ns_left == 0  # nobody has answered: there is no step to wait with

    think_soon(driver, own, other, stranger)
    driver.answer(own)
    driver.core.begin_waiting()
    assert driver.core.wait_ns_left > 0
    driver.answer(other)
    assert driver.core.wait_ns_left == 0  # the stranger's is not waited for
    driver.settle()

    think_soon(driver, own, other, stranger)
    driver.answer(own)
    driver.answer(stranger)
    driver.core.begin_waiting()
    assert driver.core.wait_ns_left == 0  # the stranger must not wait for `other`
    driver.settle()


def test_nothing_else_waits_for_programs(hash_engine: Any, endless: None) -> None:
    """A plain generation goes on at once, and begins at once while there is waiting."""
    driver = hash_engine()
    run = driver.open_run()
    first, second = (driver.steps(driver.create(run, PROMPT)) for _ in range(2))
    for steps in (first, second):
        driver.next(steps)
    driver.settle()
    think_soon(driver, first, second)
    driver.answer(first)
    driver.core.begin_waiting()
    assert driver.core.wait_ns_left > 0
    driver.generate(driver.create(run, PROMPT), max_tokens=5)
    assert driver.core.wait_ns_left == 0
    driver.core.begin_waiting()
    assert driver.core.wait_ns_left == 0
    driver.settle()


def test_sequences_that_answer_one_after_the_other_stay_in_one_batch(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forward passes per token: one, for many sequences each of whose answers is a command of its own."""
    config = EngineConfig(model_name="tiny", model_path=str(tiny_folder), dtype="float32", kv_pages=128, threads=1)
    engine = start_engine(config)
    events: queue.Queue[Event] = queue.Queue()
    engine.listen(lambda batch: [events.put(event) for event in batch] and None)
    num_sequences, num_tokens = 12, 10
    engine.submit([OpenRun(1)], 1)

    def answer_all() -> None:
        for steps in range(100, 100 + num_sequences):
            engine.submit([AnswerStep(steps, StepAnswer())], 1)
            threading.Event().wait(0.001)  # thinks about the next one
        for _ in range(num_sequences):
            while not isinstance(events.get(timeout=60), Stepped):
                pass

    for steps in range(100, 100 + num_sequences):
        engine.submit([CreateContext(steps + 100, 1), AppendTokens(steps + 100, tuple(PROMPT))], 1)
        sampling = Sampling(0, temperature=0.0)
        engine.submit([Generate(steps, steps + 100, sampling, Stop(ignore_eos=True), stepped=True)], 1)
    for _ in range(2):
        answer_all()  # nothing is known of them before
    engine.check_integrity()
    for bound in ("MOST_NS", "SLACK_NS"):  # so that a busy machine changes nothing
        monkeypatch.setattr(patience, bound, 3600 * 1000 * MS)
    cast(Any, engine)._core._stepper.stepped.patience.note_step(3600 * 1000 * MS)
    monkeypatch.setattr(Patience, "note_step", lambda self, step_ns: None)
    engine.check_integrity()
    num_steps = engine.stats().steps
    for _ in range(num_tokens):
        answer_all()
    engine.check_integrity()
    assert engine.stats().steps - num_steps <= num_tokens + 1
    engine.submit([CloseRun(1)], 1)
    engine.close()
