"""What `Steps.next` is given, checked before it reaches the host."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import InvalidArgument, Model, Splice
from tartlet_sdk.answer import answer, plain_answer


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"allow": ["a"]}, "Steps.next: allow must be token ids"),
        ({"mask": [5]}, "Steps.next: mask must be a Mask"),
        ({"bias": {-1: 1.0}}, "Steps.next: a token of bias must be from 0"),
        ({"bias": {1: float("nan")}}, r"Steps.next: bias\[1\] must be a finite number"),
        ({"mask": 0}, "Steps.next: mask must be a Mask"),
        ({"boost": {5: 1.0}}, "Steps.next: mask must be a Mask"),
        ({"boost": {None: 1.0}}, "Steps.next: a mask of boost is None"),
        ({"boost": [5]}, "Steps.next: boost must be a dict of numbers by Mask, not list"),
        ({"bias": [5]}, "Steps.next: bias must be a dict of numbers by token, not list"),
        ({"splices": Splice([1])}, "Steps.next: splices must be several, not Splice"),
        ({"splices": 5}, "Steps.next: splices must be several, not int"),
        ({"temperature": -1}, "Steps.next: temperature must be a finite number from 0"),
        ({"splices": [5]}, "Steps.next: splices must be of Splice"),
        ({"splices": [Splice(backtrack=-1)]}, "Steps.next: backtrack must be from 0"),
        ({"splices": [Splice(["x"])]}, "Steps.next: tokens of a splice must be token ids"),
    ],
)
def test_wrong_arguments_are_told_by_name(run_async: Any, given: Any, message: str) -> None:
    """They never reach the host, where they would end the run."""

    async def main() -> None:
        context = Model.default().context()
        context.fill("abc")
        async with context.steps() as steps:
            with pytest.raises(InvalidArgument, match=message):
                await steps.next(**given)

    run_async(main())


def test_an_answer_without_wishes_is_the_plain_one(stub: Any) -> None:
    """Which is made once, and sent for every token that the program leaves to the model."""
    made = answer(allow=None, mask=None, bias=None, boost=None, temperature=None, splices=())

    assert vars(made) == vars(plain_answer())
    assert plain_answer() is plain_answer()
