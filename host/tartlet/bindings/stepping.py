"""Binding of `stepping` in wit/: generating token by token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tartlet.bindings._sampling import to_num_logprobs, to_sampling, to_stop
from tartlet.bindings.contexts import when_idle
from tartlet.bindings.generation import finish_record, position_record
from tartlet.runtime.constraint import ConstraintState
from tartlet.runtime.context import ContextState
from tartlet.runtime.mask import MaskState
from tartlet.runtime.refusal import invalid_argument
from tartlet.runtime.run_state import RunFiber
from tartlet.runtime.steps import StepOutcome, StepsState
from tartlet.wasm.host_function import HostFunction
from tartlet_engine.api import PLAIN_ANSWER, Splice, StepAnswer

_PLAIN_RECORD: dict[str, Any] = {
    "sample": True,
    "allow": None,
    "mask": None,
    "bias": [],
    "boosts": [],
    "temperature": None,
    "splices": [],
}


def start(
    fiber: RunFiber, context_number: int, sampling: dict[str, Any], stop: dict[str, Any], options: dict[str, Any]
) -> object:
    """Start steps at the end of the context."""
    run = fiber.state
    run.link.catch_up()
    context = run.handles.get(context_number, ContextState)
    checked_sampling = to_sampling(sampling, context.model, run.draw_seed)
    checked_stop = to_stop(stop, context.model)
    num_logprobs = to_num_logprobs(options)
    constraint_id = mask_id = None
    if (number := options["constraint"]) is not None:
        constraint_id = run.handles.get(number, ConstraintState).engine_id_for(context.model)
    if (number := options["mask"]) is not None:
        mask_id = run.handles.get(number, MaskState).engine_id_for(context.model)

    def begin() -> int:
        if context.chat.state.needs_cue:
            context.cue()
        if not context.length:
            raise invalid_argument("the context is empty", "Fill it first.")
        steps = StepsState.start(
            context,
            checked_sampling,
            checked_stop,
            num_logprobs=num_logprobs,
            constraint_id=constraint_id,
            mask_id=mask_id,
        )
        return run.handles.add(steps)

    return when_idle(context, begin)


def next_outcome(fiber: RunFiber, number: int, answer: dict[str, Any]) -> object:
    """Answer, and give the outcome as soon as it is there."""
    steps = fiber.state.handles.get(number, StepsState)
    steps.answer(_to_answer(answer, steps))
    return fiber.state.events.when_ready(steps.event, lambda: _outcome_record(steps.read()))


def answer(fiber: RunFiber, number: int, answer: dict[str, Any]) -> None:
    """Answer."""
    steps = fiber.state.handles.get(number, StepsState)
    steps.answer(_to_answer(answer, steps))


def ready(fiber: RunFiber, number: int) -> int:
    """Give the event that says that there is an outcome."""
    return fiber.state.handles.get(number, StepsState).event.number


def outcome(fiber: RunFiber, number: int) -> dict[str, object]:
    """Give what the step that was answered last has done."""
    return _outcome_record(fiber.state.handles.get(number, StepsState).read())


def fork(fiber: RunFiber, number: int, seed: int | None) -> tuple[int, int]:
    """Fork context and steps."""
    run = fiber.state
    steps = run.handles.get(number, StepsState)
    context, child = steps.fork(run.draw_seed() if seed is None else seed)
    return run.handles.add(context), run.handles.add(child)


def hold(fiber: RunFiber, number: int) -> None:
    """Do not count the time until the next answer."""
    fiber.state.handles.get(number, StepsState).hold()


def stop(fiber: RunFiber, number: int) -> None:
    """End the steps."""
    fiber.state.handles.get(number, StepsState).stop()


def drop_steps(fiber: RunFiber, number: int) -> None:
    """Free steps, and end them."""
    fiber.state.handles.remove(number, StepsState).drop()


def _to_answer(record: dict[str, Any], steps: StepsState) -> StepAnswer:
    """The message of an `answer` record. The engine checks it, and may refuse it."""
    if record == _PLAIN_RECORD:
        return PLAIN_ANSWER
    allow, mask, boosts, splices = record["allow"], record["mask"], record["boosts"], record["splices"]
    return StepAnswer(
        sample=record["sample"],
        allow=None if allow is None else tuple(allow),
        mask_id=None if mask is None else _mask_id(mask, steps),
        bias=tuple(record["bias"]),
        boosts=tuple([(_mask_id(number, steps), boost) for number, boost in boosts]),
        temperature=record["temperature"],
        splices=tuple(
            [Splice(tuple(each["when-sampled"]), each["backtrack"], tuple(each["tokens"])) for each in splices]
        ),
    )


def _mask_id(number: int, steps: StepsState) -> int:
    """The engine's id of a mask of the run."""
    return steps.run.handles.get(number, MaskState).engine_id_for(steps.context.model)


def _outcome_record(outcome: StepOutcome) -> dict[str, object]:
    stepped, finished = outcome
    return {
        "backtrack": stepped.backtrack,
        "tokens": stepped.token_ids,
        "sampled": stepped.sampled,
        "text-backtrack": stepped.text_backtrack,
        "text": stepped.text,
        "log-probabilities": None if stepped.logprobs is None else position_record(stepped.logprobs),
        "finish": None if finished is None else finish_record(finished),
    }


INTERFACE: Mapping[str, HostFunction] = {
    "steps": drop_steps,
    "[method]steps.next": next_outcome,
    "[method]steps.answer": answer,
    "[method]steps.ready": ready,
    "[method]steps.outcome": outcome,
    "[method]steps.fork": fork,
    "[method]steps.hold": hold,
    "[method]steps.stop": stop,
    "start": start,
}
