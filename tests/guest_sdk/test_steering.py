"""Between the contract and a `Controller`: one object for each sequence."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import Branch, Controller, InvalidArgument, ProgramError, Splice, Wait
from tartlet_sdk.steering import Steering


class Scripted(Controller):
    """Decides as it is told, by what it has generated."""

    def __init__(self, decide: Any) -> None:
        self.decide = decide
        self.seen: list[tuple[int, list[int]]] = []

    def step(self, sequence: Any, info: Any) -> Any:
        self.seen.append((sequence.id, list(sequence.generated)))
        return self.decide(sequence, info)


def outcome(stub: Any, sequence: int, *tokens: int, **changed: Any) -> Any:
    fields = {"sampled": None, "siblings": [], "log_probabilities": None, "refused": None, "finish_reason": None}
    backtrack = changed.pop("backtrack", 0)
    return stub.steering.Outcome(sequence=sequence, backtrack=backtrack, tokens=list(tokens), **{**fields, **changed})


def started(decide: Any) -> tuple[Steering, Scripted]:
    controller = Scripted(decide)
    steering = Steering(controller)
    steering.start("null", [1, 2, 3])
    return steering, controller


def test_start_gives_the_config_and_takes_a_prompt(stub: Any) -> None:
    """JSON is decoded; a text or tokens replace the prompt, None leaves it."""
    given: list[Any] = []

    class Start(Controller):
        logprobs = 2

        def start(self, config: Any, prompt: list[int]) -> Any:
            given.append((config, prompt))
            return config

    for config, prompt in (('"ab"', [97, 98]), ("[5, 6]", [5, 6]), ("null", None)):
        answer = Steering(Start()).start(config, [1, 2])
        assert (answer.prompt, answer.log_probabilities) == (prompt, 2)
    assert given == [("ab", [1, 2]), ([5, 6], [1, 2]), (None, [1, 2])]


def test_tokens_are_kept_as_they_really_are(stub: Any) -> None:
    """What was dropped goes, into the prompt too, and what was appended comes."""
    steering, _ = started(lambda sequence, info: None)
    for tokens, backtrack in (((), 0), ((4,), 0), ((5, 6), 0), ((7,), 4)):
        steering.step([outcome(stub, 0, *tokens, backtrack=backtrack)])

    (sequence,) = steering._sequences.values()
    assert sequence.tokens == [1, 2, 7]


def test_what_a_step_may_return(stub: Any) -> None:
    """None, a branch, several, none, and a wait, as the contract's decisions."""
    w = stub.steering
    sampled = w.Branch(True, None, None, [], None, [])
    full = Branch(allow=iter([1]), bias={2: 1.5}, temperature=0.5, splices=(Splice([3], 1, when_sampled=range(2)),))
    cases: list[tuple[Any, Any]] = [
        (None, w.Decision_GoOn()),
        (Branch(), w.Decision_Branches([sampled])),
        (full, w.Decision_Branches([w.Branch(True, [1], None, [(2, 1.5)], 0.5, [w.Splice([0, 1], 1, [3])])])),
        (
            Branch.force([8, 9], 2),
            w.Decision_Branches([w.Branch(False, None, None, [], None, [w.Splice([], 2, [8, 9])])]),
        ),
        ((Branch() for _ in range(2)), w.Decision_Branches([sampled, sampled])),
        ([], w.Decision_Branches([])),
    ]
    for returned, decision in cases:
        steering, _ = started(lambda sequence, info, returned=returned: returned)
        assert steering.step([outcome(stub, 0)]) == [decision]


def test_forks_have_their_numbers_and_a_copy_of_the_state(stub: Any) -> None:
    """The host numbers forks in the order of decisions and branches; what a parent does later is not a child's."""

    def decide(sequence: Any, info: Any) -> Any:
        return [Branch(), Branch()] if len(sequence.generated) < 2 else None

    steering, first = started(decide)
    steering.step([outcome(stub, 0)])  # 0 forks 1
    steering.step([outcome(stub, 0, 5, siblings=[0, 1]), outcome(stub, 1, 6, siblings=[0, 1])])  # 2 and 3
    steering.step([outcome(stub, number, 7) for number in range(4)])

    seen = {number: controller.seen for number, controller in steering._controllers.items()}  # type: ignore[attr-defined]
    assert seen[0] == first.seen == [(0, []), (0, [5]), (0, [5, 7])]
    assert seen[1] == [(0, []), (1, [6]), (1, [6, 7])]
    assert seen[2] == [(0, []), (0, [5]), (2, [5, 7])]
    assert seen[3] == [(0, []), (1, [6]), (3, [6, 7])]


def test_a_refused_fork_leaves_no_copies(stub: Any) -> None:
    """Their numbers are used up, as the host's are."""
    decisions = [[Branch()] * 3, [Branch()] * 2, None]
    steering, _ = started(lambda sequence, info: decisions.pop(0))
    error = stub.types.Error(stub.types.ErrorCode.QUOTA_EXCEEDED, "too many", "")

    steering.step([outcome(stub, 0)])
    steering.step([outcome(stub, 0, refused=error)])

    assert sorted(steering._controllers) == [0, 3]


def test_whoever_has_ended_is_forgotten(stub: Any) -> None:
    """By its own decision, or by the host's word, of which `end` hears."""
    ended: list[Any] = []

    class End(Scripted):
        def end(self, sequence: Any, info: Any) -> None:
            ended.append((sequence.id, sequence.generated, info.finish_reason))

    steering = Steering(End(lambda sequence, info: [] if sequence.id else [Branch(), Branch()]))
    steering.start("null", [1])
    steering.step([outcome(stub, 0)])
    steering.step([outcome(stub, 1, 5), outcome(stub, 0, 6, finish_reason="eos")])

    assert ended == [(0, [6], "eos")]
    assert steering._controllers == {}
    assert steering._sequences == {}


def test_waits_become_events_that_are_freed(stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable and a time are two events; both are dropped when the sequence goes on."""
    dropped: list[int] = []
    monkeypatch.setattr(stub.events, "drop_event", dropped.append)
    steering, _ = started(lambda sequence, info: Wait(variable="x", above=2, seconds=0.5))

    (decision,) = steering.step([outcome(stub, 0)])
    assert len(decision.value) == 2
    assert dropped == []
    steering.step([outcome(stub, 0)])
    assert dropped == decision.value


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        ([3], ProgramError, "a step must return a Branch, several, a Wait or None, not int"),
        (Wait(), ProgramError, "a Wait must name a variable, or a number of seconds"),
        (Branch(allow=["x"]), InvalidArgument, "allow must be token ids"),  # type: ignore[list-item]
        (Branch(bias={1: "x"}), InvalidArgument, "a bias must be a number"),  # type: ignore[dict-item]
        (Branch(temperature=-1), InvalidArgument, "temperature must be a finite number from 0"),
        (Branch(mask=[1]), InvalidArgument, "mask must be a Mask"),  # type: ignore[arg-type]
        (Branch.force([1], -1), InvalidArgument, "backtrack must be from 0"),
        (Wait(variable="x", above=-1), InvalidArgument, "above must be from 0"),
        (Wait(seconds=-1), InvalidArgument, "seconds must be"),
    ],
)
def test_wrong_decisions_are_told_by_name(stub: Any, returned: Any, error: Any, message: str) -> None:
    """They never reach the host, where they would only end the controller."""
    steering, _ = started(lambda sequence, info: returned)

    with pytest.raises(error, match=f"Controller.step: {message}"):
        steering.step([outcome(stub, 0)])
