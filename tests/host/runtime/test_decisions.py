from __future__ import annotations

from typing import Any

import pytest

from tartlet.errors import InvalidHandleError
from tartlet.runtime.decisions import Branches, Wait, outcome_record, to_decision
from tartlet.runtime.event_table import EventTable
from tartlet.runtime.handles import HandleTable
from tartlet.wasm.timers import Timers
from tartlet_engine.api import (
    EngineError,
    ErrorCode,
    Finished,
    FinishReason,
    PositionLogprobs,
    Splice,
    StepAnswer,
    Stepped,
    TokenLogprob,
    Usage,
)

BRANCH = {
    "sample": True,
    "allow": None,
    "mask": None,
    "bias": [],
    "temperature": None,
    "splices": [],
}


class Holder:
    """A controller's handles and events."""

    def __init__(self) -> None:
        self.handles = HandleTable(None)
        self.events = EventTable(self.handles, Timers(), lambda action: action())


def decide(record: Any, holder: Any = None) -> Any:
    model: Any = None
    return to_decision(record, holder or Holder(), model)


def test_decisions() -> None:
    """Going on, stopping, forking with everything that a branch can have, and waiting."""
    full = {
        **BRANCH,
        "sample": False,
        "allow": [1, 2],
        "bias": [(3, 0.5)],
        "temperature": 0.25,
        "splices": [{"when-sampled": [4], "backtrack": 5, "tokens": [6]}],
    }
    holder = Holder()
    event = holder.events.add()

    assert decide(("go-on", None)) == Branches((StepAnswer(),))
    assert decide(("branches", [])) == Branches([])
    assert decide(("branches", [BRANCH, full])) == Branches(
        [
            StepAnswer(),
            StepAnswer(
                sample=False, allow=(1, 2), bias=((3, 0.5),), temperature=0.25, splices=(Splice((4,), 5, (6,)),)
            ),
        ]
    )
    assert decide(("wait", [event.number]), holder) == Wait([event])


@pytest.mark.parametrize("record", [("wait", [7]), ("branches", [{**BRANCH, "mask": 7}])])
def test_handles_must_be_held(record: Any) -> None:
    """A number that means nothing is a fault of the controller."""
    with pytest.raises(InvalidHandleError):
        decide(record)


class Sequence:
    """A sequence with news."""

    def __init__(
        self, step: Stepped | None, finish: Finished | None = None, refused: EngineError | None = None
    ) -> None:
        self.number, self.finish, self.is_heard = 3, finish, False
        self.has_ended = finish is not None
        self._news = step, [3, 4], refused

    def take_news(self) -> Any:
        return self._news


def record(sequence: Any, num_logprobs: int | None = None) -> dict[str, Any]:
    return outcome_record(sequence, num_logprobs)


def test_outcomes() -> None:
    """Nothing, a step, a refusal and an end, as the contract's records; log-probabilities only if asked for."""
    logprobs = PositionLogprobs(TokenLogprob(1, -0.5), (TokenLogprob(1, -0.5), TokenLogprob(2, -1.5)))
    step = Stepped(9, (1, 2), "ab", sampled=1, backtrack=2, logprobs=logprobs)
    nothing = {"backtrack": 0, "tokens": (), "sampled": None, "log-probabilities": None, "refused": None}

    assert record(Sequence(None)) == {"sequence": 3, "siblings": [3, 4], "finish-reason": None, **nothing}
    assert record(Sequence(step))["log-probabilities"] is None
    told = record(Sequence(step), 1)
    assert (told["backtrack"], told["tokens"], told["sampled"]) == (2, (1, 2), 1)
    assert told["log-probabilities"] == {
        "chosen": {"token": 1, "log-probability": -0.5},
        "top": [{"token": 1, "log-probability": -0.5}],
    }
    refused = record(Sequence(None, refused=EngineError(ErrorCode.INVALID_ARGUMENT, "no", "why")))["refused"]
    assert refused == {"code": "invalid-argument", "message": "no", "hint": "why"}


def test_an_end_is_heard() -> None:
    """Telling of the end marks it as told."""
    sequence = Sequence(None, Finished(9, FinishReason.LENGTH, Usage(1, 0, 1, 1, 0, 0, 1)))

    assert record(sequence)["finish-reason"] == "length"
    assert sequence.is_heard
