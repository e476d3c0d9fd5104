"""How far a run may be ahead of the engine: a program can submit more commands than the engine carries out.

Whoever is too far ahead is held: its fiber does not go on before the engine has caught up. So the commands that wait
for the engine take a bounded memory for each run, however fast its program is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tartlet.runtime.engine_link import EngineLink, Run, Target
from tartlet_engine.api import (
    PLAIN_ANSWER,
    AnswerStep,
    AppendTokens,
    Command,
    CompileConstraint,
    Event,
    Fence,
    Forward,
    MoveMatcher,
    SaveContext,
    StepAnswer,
)

WINDOW = 256
"""Commands of a run after which the engine is asked to tell when it has carried them out."""

MAX_WINDOWS = 2
"""Windows that may be under way. While the engine works on one the program fills the next, so neither waits."""

_TOKENS_OF_A_COMMAND = 64
_CHARACTERS_OF_A_COMMAND = 256
"""Commands with much in them count as several."""


class Paced(Target, Protocol):
    """A run that can be held."""

    @property
    def engine_id(self) -> int:
        """Its id in the engine."""
        ...

    def hold(self) -> None:
        """Do not let the program go on after the host call that it is in."""
        ...

    def release(self) -> None:
        """Let it go on."""
        ...


class Pacing:
    """Counts one run's commands. Lives on the executor's thread."""

    def __init__(self, link: EngineLink, run: Paced) -> None:
        self._link = link
        self._run = run
        self._num_sent = 0  # since the last fence
        self._num_fences = 0  # that have not been answered

    def submit(self, command: Command) -> None:
        """Send a command of the run, and hold the run if that is too much."""
        run_id = self._run.engine_id
        self._link.submit(command, run_id)
        self._num_sent += _weight(command)
        if self._num_sent >= WINDOW:
            self._num_sent = 0
            self._num_fences += 1
            _SentFence(self._link, self._run.run, run_id, self._pass_fence)
            if self._num_fences >= MAX_WINDOWS:
                self._run.hold()

    def _pass_fence(self) -> None:
        self._num_fences -= 1
        if self._num_fences < MAX_WINDOWS:
            self._run.release()


class _SentFence:
    """A fence that has not been answered: a `Target`."""

    def __init__(self, link: EngineLink, run: Run, run_id: int, then: Callable[[], None]) -> None:
        self.run = run
        self._link = link
        self._then = then
        self._operation_id = link.new_id()
        link.register(self._operation_id, self)
        link.submit(Fence(self._operation_id, run_id), run_id)

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that the engine has come that far."""
        self._link.unregister(self._operation_id)
        self._then()


def _weight(command: Command) -> int:
    """As how many commands this one counts."""
    if isinstance(command, AppendTokens | MoveMatcher):
        return 1 + len(command.token_ids) // _TOKENS_OF_A_COMMAND
    if isinstance(command, Forward):
        num_asked = sum(1 + len(request.token_ids) for request in command.requests)
        return 1 + (len(command.token_ids) + num_asked) // _TOKENS_OF_A_COMMAND
    if isinstance(command, AnswerStep):
        return 1 + _num_tokens(command.answer) // _TOKENS_OF_A_COMMAND
    if isinstance(command, CompileConstraint):
        return 1 + len(command.text) // _CHARACTERS_OF_A_COMMAND
    if isinstance(command, SaveContext):
        return 1 + len(command.host_state) // _CHARACTERS_OF_A_COMMAND
    return 1


def _num_tokens(answer: StepAnswer) -> int:
    """Tokens that an answer names, and as how many its masks count."""
    if answer == PLAIN_ANSWER:
        return 0
    spliced = sum(len(splice.when_sampled) + len(splice.token_ids) for splice in answer.splices)
    boosted = _TOKENS_OF_A_COMMAND * len(answer.boosts)  # each is a pass over the vocabulary
    return len(answer.allow or ()) + len(answer.bias) + boosted + spliced
