"""What a controller hears and answers, between the records of wit/ (`steering`) and the engine's messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tartlet.runtime.event_table import Event
from tartlet.runtime.guest_state import GuestState
from tartlet.runtime.mask import MaskState
from tartlet.runtime.model import ModelHandle
from tartlet_engine.api import PositionLogprobs, Splice, StepAnswer, TokenLogprob

if TYPE_CHECKING:
    from tartlet.runtime.controlled_sequence import ControlledSequence


class Branches(NamedTuple):
    """Stop (no answer), go on (one), or fork (more)."""

    answers: Sequence[StepAnswer]


class Wait(NamedTuple):
    """Go on when one of the events is ready."""

    events: Sequence[Event]


Decision: TypeAlias = Branches | Wait

_GO_ON = Branches((StepAnswer(),))


def to_decision(record: tuple[str, Any], controller: GuestState, model: ModelHandle) -> Decision:
    """The decision of a `decision` variant of a controller, on a sequence of a model.

    What else is in the answers is checked by the engine, which refuses what it cannot carry out.

    Raises InvalidHandleError for an event or mask that the controller does not hold, and a refusal for a mask of
    another model.
    """
    kind, value = record
    if kind == "go-on":
        return _GO_ON
    if kind == "wait":
        return Wait([controller.events.get(number) for number in value])
    return Branches([_to_answer(branch, controller, model) for branch in value])


def outcome_record(sequence: ControlledSequence, num_logprobs: int | None) -> dict[str, object]:
    """The `outcome` record of what has happened to a sequence, which is taken from it."""
    step, siblings, refused = sequence.take_news()
    finish_reason = None
    if sequence.has_ended:
        sequence.is_heard = True
        finish_reason = None if sequence.finish is None else sequence.finish.reason.value
    logprobs = None if step is None else step.logprobs
    return {
        "sequence": sequence.number,
        "backtrack": 0 if step is None else step.backtrack,
        "tokens": () if step is None else step.token_ids,
        "sampled": None if step is None else step.sampled,
        "siblings": siblings,
        "log-probabilities": None if logprobs is None or num_logprobs is None else _logprobs(logprobs, num_logprobs),
        "refused": None
        if refused is None
        else {"code": refused.code.value, "message": refused.message, "hint": refused.hint},
        "finish-reason": finish_reason,
    }


def _to_answer(branch: dict[str, Any], controller: GuestState, model: ModelHandle) -> StepAnswer:
    allow, mask = branch["allow"], branch["mask"]
    return StepAnswer(
        sample=branch["sample"],
        allow=None if allow is None else tuple(allow),
        mask_id=None if mask is None else controller.handles.get(mask, MaskState).engine_id_for(model),
        bias=tuple(branch["bias"]),
        temperature=branch["temperature"],
        splices=tuple(
            Splice(tuple(splice["when-sampled"]), splice["backtrack"], tuple(splice["tokens"]))
            for splice in branch["splices"]
        ),
    )


def _logprobs(position: PositionLogprobs, num_logprobs: int) -> dict[str, object]:
    return {"chosen": _entry(position.chosen), "top": [_entry(entry) for entry in position.top[:num_logprobs]]}


def _entry(entry: TokenLogprob) -> dict[str, object]:
    return {"token": entry.token_id, "log-probability": entry.logprob}
