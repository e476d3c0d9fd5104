"""How far a run may be ahead of the engine: what it has sent and the engine has not done is bounded."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from tartlet.runtime.engine_link import EngineLink
from tartlet.runtime.pacing import MAX_WINDOWS, WINDOW, Pacing
from tartlet_engine.api import (
    AnswerStep,
    AppendTokens,
    Command,
    CompileConstraint,
    ConstraintKind,
    Done,
    EngineClient,
    Event,
    Fence,
    FreeContext,
    SaveContext,
    Splice,
    StepAnswer,
)


class Engine:
    """An engine that notes commands and answers when it is told to, and the executor and run beside it."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.has_woken = False
        self.posted: list[Callable[[], object]] = []
        self.is_held = False
        self.engine_id = 7
        self.say: Any = None
        self.ids = itertools.count(1)
        self.link = EngineLink(cast(EngineClient, self), self, lambda error: None)
        self.pacing = Pacing(self.link, self)

    @property
    def run(self) -> Any:
        return self

    def handle(self, event: Event, at_ns: int) -> None:
        raise AssertionError("nothing is for the run itself")

    def wake(self) -> None:
        """Nothing waits for an event."""

    def new_id(self) -> int:
        """The next number."""
        return next(self.ids)

    def submit(self, commands: Sequence[Command], run_id: int | None = None) -> None:
        assert run_id == self.engine_id
        self.commands += commands

    def listen(self, listener: Any) -> None:
        self.say = listener

    def post(self, action: Callable[[], object]) -> None:
        self.posted.append(action)

    def hold(self) -> None:
        self.is_held = True

    def release(self) -> None:
        self.is_held = False

    def turn(self) -> None:
        """Let the executor do what was posted."""
        while self.posted:
            self.posted.pop(0)()

    def send_until_held(self, command: Command) -> int:
        """How many such commands are sent before the run is held."""
        count = 0
        while not self.is_held:
            self.pacing.submit(command)
            count += 1
            assert count < 10_000
        self.turn()
        return count

    def answer(self) -> None:
        """Carry out commands up to the first fence."""
        fence = next(command for command in self.commands if isinstance(command, Fence))
        del self.commands[: self.commands.index(fence) + 1]
        self.say([Done(fence.operation_id)])
        self.turn()


def test_a_run_that_is_too_far_ahead_is_held() -> None:
    """So many commands may wait; when the engine has done a window of them, another one may follow."""
    engine = Engine()
    assert engine.send_until_held(FreeContext(1)) == MAX_WINDOWS * WINDOW
    for _ in range(5):
        engine.answer()
        assert not engine.is_held
        assert engine.send_until_held(FreeContext(1)) == WINDOW

    assert len(engine.commands) == MAX_WINDOWS * (WINDOW + 1)


def test_few_commands_need_no_answer() -> None:
    """A run that asks for little is never held, and sends nothing besides."""
    engine = Engine()
    for _ in range(WINDOW - 1):
        engine.pacing.submit(FreeContext(1))
    engine.turn()

    assert not engine.is_held
    assert not any(isinstance(command, Fence) for command in engine.commands)


@pytest.mark.parametrize(
    "command",
    [
        AppendTokens(1, (5,) * 6400),
        AnswerStep(1, StepAnswer(splices=(Splice(token_ids=(5,) * 6400),))),
        AnswerStep(1, StepAnswer(boosts=((7, 1.0),) * 100)),
        CompileConstraint(1, 7, ConstraintKind.REGEX, "a" * 25_600),
        SaveContext(1, 2, "name", host_state="a" * 25_600),
    ],
)
def test_large_commands_count_as_several(command: Command) -> None:
    """What takes much memory is bounded by memory, not by number."""
    assert Engine().send_until_held(command) <= MAX_WINDOWS * -(-WINDOW // 100)
