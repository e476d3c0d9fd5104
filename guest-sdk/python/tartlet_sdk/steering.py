"""Between the contract's `start` and `step` and a program's `Controller`: keeps one of these for each sequence."""

from __future__ import annotations

import copy
import json
import math
from typing import TYPE_CHECKING, Any

from tartlet_sdk import checks, wit
from tartlet_sdk.answer import Splice
from tartlet_sdk.controller import Branch, Controller, Decision, Sequence, StepInfo, Wait
from tartlet_sdk.draft import TokenLogprobs
from tartlet_sdk.errors import ProgramError
from tartlet_sdk.host_call import call, from_host
from tartlet_sdk.mask import mask_id
from tartlet_sdk.model import Model

if TYPE_CHECKING:
    from wit_world.imports import steering as wit_steering

CALL = "Controller.step"


class Steering:
    """The controllers of one generation, one for each of its sequences."""

    def __init__(self, controller: Controller) -> None:
        self._controllers = {0: controller}
        self._sequences: dict[int, Sequence] = {}
        self._waits: dict[int, list[int]] = {}  # events, by sequence
        self._unborn: dict[int, list[int]] = {}  # forks that nobody has heard of yet, by parent
        self._branches: dict[int, list[Branch]] = {}  # the last decisions: the host still needs their masks
        self._next_id = 1  # of the next sequence, as the host numbers them

    def start(self, config: str, prompt: list[int]) -> wit_steering.StartAnswer:
        """Begin with the first sequence."""
        controller = self._controllers[0]
        replaced = controller.start(json.loads(config), list(prompt))
        if replaced is not None:
            called = "Controller.start"
            given = replaced if isinstance(replaced, str) else checks.tokens(replaced, "the new prompt", called)
            prompt = Model.default().tokenize(given) if isinstance(given, str) else given
        self._sequences[0] = Sequence(0, list(prompt), len(prompt))
        logprobs = controller.logprobs
        if logprobs is not None:
            checks.whole(logprobs, "logprobs", "Controller", 0, 20)
        return wit.steering.StartAnswer(None if replaced is None else prompt, logprobs)

    def step(self, outcomes: list[wit_steering.Outcome]) -> list[wit_steering.Decision]:
        """Ask the controller of each sequence."""
        return [self._step(outcome) for outcome in outcomes]

    def _step(self, outcome: wit_steering.Outcome) -> wit_steering.Decision:
        number = outcome.sequence
        sequence, controller = self._sequences[number], self._controllers[number]
        if outcome.backtrack:
            del sequence.tokens[-outcome.backtrack :]
        sequence.tokens += outcome.tokens
        unborn = self._unborn.pop(number, ())
        if outcome.refused is not None and not outcome.siblings:
            for child in unborn:
                self._forget(child)
        for event in self._waits.pop(number, ()):
            wit.events.drop_event(event)
        logprobs = outcome.log_probabilities
        info = StepInfo(
            outcome.backtrack,
            outcome.tokens,
            outcome.sampled,
            outcome.siblings,
            None if logprobs is None else TokenLogprobs.of(logprobs),
            None if outcome.refused is None else from_host(outcome.refused, CALL),
            outcome.finish_reason,
        )
        if outcome.finish_reason is not None:
            controller.end(sequence, info)
            self._forget(number)
            return wit.steering.Decision_GoOn()
        return self._decision(number, controller.step(sequence, info))

    def _decision(self, number: int, decided: Decision) -> wit_steering.Decision:
        if decided is None:
            return wit.steering.Decision_GoOn()
        if isinstance(decided, Wait):
            events = _events(decided)
            self._waits[number] = events
            return wit.steering.Decision_Wait(events)
        branches = [decided] if isinstance(decided, Branch) else list(decided)
        for branch in branches:
            if not isinstance(branch, Branch):
                raise ProgramError(
                    f"a step must return a Branch, several, a Wait or None, not {type(branch).__name__}", call=CALL
                )
        answers = [_branch(branch) for branch in branches]
        self._branches[number] = branches
        if not branches:
            self._forget(number)
        if len(branches) > 1:
            self._unborn[number] = [self._fork(number) for _ in branches[1:]]
        return wit.steering.Decision_Branches(answers)

    def _fork(self, number: int) -> int:
        """Copy a sequence and its controller; the new number."""
        child, parent = self._next_id, self._sequences[number]
        self._next_id += 1
        self._sequences[child] = Sequence(child, parent.tokens.copy(), parent.prompt_length)
        self._controllers[child] = copy.deepcopy(self._controllers[number])
        return child

    def _forget(self, number: int) -> None:
        del self._sequences[number], self._controllers[number]
        self._branches.pop(number, None)


def _events(wait: Wait) -> list[int]:
    events = []
    if wait.variable is not None:
        checks.whole(wait.above, "above", CALL, high=(1 << 64) - 1)
        name = checks.text(wait.variable, "variable", CALL)
        events.append(call(CALL, wit.store.variable_above, name, wait.above))
    if wait.seconds is not None:
        checks.number(wait.seconds, "seconds", CALL, 0, 1e9)
        events.append(wit.events.timer(math.ceil(wait.seconds * 1e9)))
    if not events:
        raise ProgramError("a Wait must name a variable, or a number of seconds", call=CALL)
    return events


def _branch(branch: Branch) -> wit_steering.Branch:
    bias: list[Any] = [
        (checks.whole(token, "a biased token", CALL), checks.number(value, "a bias", CALL))
        for token, value in branch.bias.items()
    ]
    temperature = branch.temperature
    if temperature is not None:
        temperature = checks.number(temperature, "temperature", CALL, 0)
    return wit.steering.Branch(
        bool(branch.sample),
        None if branch.allow is None else checks.tokens(branch.allow, "allow", CALL),
        mask_id(branch.mask, CALL),
        bias,
        temperature,
        [_splice(splice) for splice in branch.splices],
    )


def _splice(splice: Splice) -> wit_steering.Splice:
    return wit.steering.Splice(
        checks.tokens(splice.when_sampled, "when_sampled", CALL),
        checks.whole(splice.backtrack, "backtrack", CALL),
        checks.tokens(splice.tokens, "a splice's tokens", CALL),
    )
