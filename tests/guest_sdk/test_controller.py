"""The classes that controllers are written with."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tartlet_sdk import Branch, Controller, Mask, Model, Sequence, Splice


def test_a_controller_that_defines_nothing_goes_on(stub: Any) -> None:
    """Start, step and end have defaults."""
    controller, info = Controller(), None
    sequence = Sequence(0, [1, 2, 3], 2)

    assert controller.start({"a": 1}, [1]) is None
    assert controller.step(sequence, info) is None  # type: ignore[arg-type]
    controller.end(sequence, info)  # type: ignore[arg-type]
    assert sequence.generated == [3]


def test_forced_tokens_are_one_splice() -> None:
    """Nothing is sampled."""
    assert Branch.force([1, 2], 3) == Branch(sample=False, splices=(Splice([1, 2], 3),))


def test_handles_are_shared_by_forks(stub: Any) -> None:
    """Models and masks never change, so a deep copy of a controller keeps them, and copies the rest."""

    class State(Controller):
        def __init__(self) -> None:
            self.model = Model.default()
            self.mask = Mask.of([1])
            self.seen = [[1]]

    first = State()
    second = copy.deepcopy(first)

    assert second.model is first.model
    assert second.mask is first.mask
    assert second.seen == first.seen
    assert second.seen[0] is not first.seen[0]


PROGRAM = """
class Count(Controller):
    total = []

    def start(self, config, prompt):
        self.left = config

    def step(self, sequence, info):
        self.left -= 1
        return None if self.left >= 0 else []

@inferlet
async def main(n: int):
    context = Model.default().context()
    context.fill("hello")
    draft = await context.generate(controller="main", config=n)
    return len(draft.tokens), draft.finish_reason
"""


@pytest.mark.runner
def test_an_inferlet_may_bring_its_own_controller(tiny: Any) -> None:
    """A file with both: the controller is known by the program's own name."""
    assert tiny(PROGRAM, {"n": 3}) == [3, "stopped"]
