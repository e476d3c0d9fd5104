from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from tartlet_engine import api

USAGE = api.Usage(10, 8, 3, 2, 1, 1000, 2000, 2)
LOGPROBS = api.PositionLogprobs(api.TokenLogprob(5, -0.5), (api.TokenLogprob(5, -0.5), api.TokenLogprob(6, -2.0)))

COMMANDS = [
    api.OpenRun(1),
    api.OpenRun(1, "acme", 100, 7, 2.5),
    api.CloseRun(1),
    api.Fence(6, 1),
    api.CreateContext(2, 1),
    api.AppendTokens(2, (1, 2, 3)),
    api.ForkContext(2, 3, 2),
    api.TruncateContext(2, 1),
    api.FlushContext(2, 4),
    api.FreeContext(2),
    api.Generate(5, 2, api.Sampling(seed=2**64 - 1, logit_bias=((3, -1.5),)), api.Stop(9, (1,), ("é",), True), 2),
    api.Generate(5, 2, api.Sampling(seed=0), constraint_id=7),
    api.Generate(5, 2, api.Sampling(seed=0), stepped=True),
    api.AnswerStep(5, api.StepAnswer()),
    api.AnswerStep(
        5, api.StepAnswer(True, (1, 2), 6, ((3, -1.5),), ((6, 2.0),), 0.5, (api.Splice((1,), 2, (3, 4)), api.Splice()))
    ),
    api.ForkSteps(5, 8, 9, 2**64 - 1),
    api.CompileConstraint(7, 1, api.ConstraintKind.JSON_SCHEMA, "{}"),
    api.Generate(5, 2, api.Sampling(seed=0), mask_id=8),
    api.Generate(5, 2, api.Sampling(seed=0), speculation=api.Speculation(4, 2, (1, 5))),
    api.FreeConstraint(7, 1),
    api.CombineConstraints(9, 1, api.Combination.ANY_OF, (7, 8)),
    api.ConstrainToMask(9, 1, 8),
    api.MakeMask(8, 1, b"\1\0\0\0"),
    api.FreeMask(8, 1),
    api.OpenMatcher(10, 1, 7),
    api.MoveMatcher(10, 1, 2, (3, 4)),
    api.ForkMatcher(10, 1, 11),
    api.FreeMatcher(10, 1),
    api.Forward(
        12,
        2,
        (1, 2),
        (-1, -1),
        (5, 5),
        (api.RowRequest(0, api.Sampling(seed=1), 2, 3, (4,), True, True),),
        True,
    ),
    api.CommitForward(2, (1,)),
    api.DiscardForward(2),
    api.CancelGeneration(5),
    api.EvictContext(2, 6, 0, 1),
    api.SaveContext(2, 6, "name", 1000, True, "state"),
    api.OpenSaved(7, 1, 8, "name"),
    api.ListSaved(9, 1),
    api.DeleteSaved(10, 1, "name"),
    api.PublishPrefix(6, (1, 2)),
    api.UnpublishPrefix(6),
]
EVENTS = [
    api.Chunk(5, (1, 2), "héllo", (LOGPROBS,)),
    api.Stepped(5, (1, 2), "é", 7, 3, 4, LOGPROBS, api.FinishReason.LENGTH),
    api.StepRefused(5, api.EngineError(api.ErrorCode.INVALID_ARGUMENT, "too far")),
    api.Finished(5, api.FinishReason.STOP_STRING, USAGE, "é"),
    api.Done(4),
    api.Forwarded(12, (-1.5, -2.0), (api.RowResult(0, LOGPROBS.chosen, LOGPROBS.top, (-3.0,), 0.5, b"\0\0\0\0"),)),
    api.MatcherMoved(10, 3, b"\1\0\0\0", (3,), True, False, "why"),
    api.Opened(7, (1, 2), "state"),
    api.Opened(7, (1, 2), "state", ((1, 5),)),
    api.SavedList(9, (api.SavedContext("name", "tiny", 2, 100, None), api.SavedContext("other", "tiny", 0, 9, 50))),
    api.Failed(5, api.EngineError(api.ErrorCode.KV_EXHAUSTED, "no pages", "use fewer")),
    api.LimitReached(1, "kv_pages", 8, 7),
    api.PagesHeld(1, 8, 5_000_000_000, 17),
    api.RunClosed(1, 30, 20, 5_000_000_000),
    api.EngineStopped(api.EngineError(api.ErrorCode.INTERNAL, "gone")),
]


@pytest.mark.parametrize(
    ("messages", "union"), [(COMMANDS, api.Command), (EVENTS, api.Event)], ids=["commands", "events"]
)
def test_messages_cross_a_socket_unchanged(messages: list[Any], union: Any) -> None:
    """Encoded and decoded as msgpack, a batch is equal to what was sent, types included."""
    received = msgspec.msgpack.decode(msgspec.msgpack.encode(messages), type=list[union])

    assert received == messages
    assert [type(message) for message in received] == [type(message) for message in messages]


@pytest.mark.parametrize(
    ("messages", "union"), [(COMMANDS, api.Command), (EVENTS, api.Event)], ids=["commands", "events"]
)
def test_every_kind_of_message_is_in_the_test_above(messages: list[Any], union: Any) -> None:
    """A new message cannot be forgotten."""
    assert {type(message) for message in messages} == set(get_args(union))


@pytest.mark.parametrize("message", [*COMMANDS, *EVENTS], ids=lambda message: type(message).__name__)
def test_messages_cannot_be_changed(message: Any) -> None:
    """What was submitted stays as it was, whichever thread looks at it."""
    with pytest.raises(AttributeError, match="immutable"):
        setattr(message, message.__struct_fields__[0], 0)


@pytest.mark.parametrize(("name", "wit"), [("ErrorCode", "error-code"), ("FinishReason", "finish-reason")])
def test_the_names_are_those_of_the_contract(name: str, wit: str) -> None:
    """Neither side knows a case that the other does not."""
    from tartlet.contract import contract

    definitions = {key: item for interface in contract().interfaces.values() for key, item in interface.types.items()}

    assert [member.name for member in definitions[wit].members] == [case.value for case in getattr(api, name)]


def test_every_event_says_whom_it_concerns() -> None:
    """But for the end of the engine, which concerns everybody, there is an id in it."""
    for event in EVENTS:
        if not isinstance(event, api.EngineStopped):
            assert isinstance(api.TARGET_IDS[type(event)](event), int)
    assert set(api.TARGET_IDS) == set(get_args(api.Event)) - {api.EngineStopped}
