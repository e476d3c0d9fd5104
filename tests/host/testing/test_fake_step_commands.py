"""Commands of stepped generations on the fake engine."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet.testing import FakeEngine
from tartlet.testing.fake_core import FakeCore
from tartlet_engine.api import (
    AnswerStep,
    AppendTokens,
    CancelGeneration,
    CloseRun,
    CreateContext,
    Failed,
    Finished,
    FinishReason,
    ForkSteps,
    Generate,
    LimitReached,
    OpenRun,
    PagesHeld,
    Sampling,
    Splice,
    StepAnswer,
    Stepped,
    StepRefused,
)


@pytest.fixture
def core() -> FakeCore:
    engine = FakeEngine()
    info = engine.models["fake"]
    engine.close()
    core = FakeCore(info, lambda prompt: "reply")
    do(core, OpenRun(1, max_generated_tokens=6), CreateContext(2, 1), AppendTokens(2, (*b"ask",)))
    do(core, Generate(3, 2, Sampling(seed=0), stepped=True))
    return core


def do(core: FakeCore, *commands: Any) -> list[Any]:
    """What comes of commands, and of the step after them, but for the pages that are held."""
    for command in commands:
        core.execute(command)
    return [event for event in core.step() if not isinstance(event, PagesHeld)]


def test_nothing_happens_without_an_answer(core: FakeCore) -> None:
    """A stepped generation gives no token of its own, and makes no work."""
    assert do(core) == []
    assert not core.has_work
    (outcome,) = do(core, AnswerStep(3, StepAnswer()))
    assert isinstance(outcome, Stepped)
    assert outcome.token_ids == (ord("r"),)
    core.check_integrity()


def test_pages_come_back_with_what_is_dropped(core: FakeCore) -> None:
    """Going back gives pages, too, and more than there is cannot be dropped."""
    do(core, AnswerStep(3, StepAnswer(False, splices=(Splice(token_ids=(1, 2)),))))
    (refused,) = do(core, AnswerStep(3, StepAnswer(False, splices=(Splice(backtrack=9),))))
    (outcome,) = do(core, AnswerStep(3, StepAnswer(False, splices=(Splice(backtrack=4),))))

    assert isinstance(refused, StepRefused)
    assert outcome.backtrack == 4
    assert core._state.contexts[2].token_ids == [ord("a")]
    core.check_integrity()


def test_forks_and_ends(core: FakeCore) -> None:
    """A fork has a context of its own; a cancel ends the parent only; closing the run ends all."""
    do(core, ForkSteps(3, 4, 5))
    (ended,) = do(core, CancelGeneration(3))
    (outcome,) = do(core, AnswerStep(5, StepAnswer()), AnswerStep(3, StepAnswer()))
    (failed,) = do(core, ForkSteps(3, 6, 7))

    assert isinstance(ended, Finished)
    assert ended.reason is FinishReason.CANCELLED
    assert isinstance(outcome, Stepped)
    assert isinstance(failed, Failed)
    assert failed.failed_id == 7
    core.check_integrity()
    do(core, CloseRun(1))
    core.check_integrity()
    assert core.stats().pages_held == 0


def test_the_limit_of_the_run_counts(core: FakeCore) -> None:
    """Sampled and forced tokens count, and the run is stopped by name."""
    events = do(core, AnswerStep(3, StepAnswer(splices=(Splice(token_ids=(1,) * 6),))))

    assert any(isinstance(event, LimitReached) for event in events)
    assert not core.has_work
