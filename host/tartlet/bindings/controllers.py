"""Binding of `controllers` in wit/: generations that another program steers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tartlet.bindings._sampling import to_num_logprobs, to_sampling, to_stop
from tartlet.bindings.contexts import when_idle
from tartlet.bindings.generation import finish_record, position_record
from tartlet.errors import TartletError
from tartlet.runtime.constraint import ConstraintState
from tartlet.runtime.context import ContextState
from tartlet.runtime.controlled import ControlledGeneration, Settings
from tartlet.runtime.controlled_sequence import SequenceChunk
from tartlet.runtime.mask import MaskState
from tartlet.runtime.program import Program
from tartlet.runtime.refusal import refusal
from tartlet.runtime.run_state import RunFiber
from tartlet.wasm.host_function import HostFunction
from tartlet_engine.api import ErrorCode


def control(
    fiber: RunFiber,
    context_number: int,
    controller: str,
    config: str,
    sampling: dict[str, Any],
    stop: dict[str, Any],
    options: dict[str, Any],
) -> object:
    """Start a generation that a controller steers."""
    run = fiber.state
    run.link.catch_up()
    context = run.handles.get(context_number, ContextState)
    context.check_usable()
    constraint = mask = None
    if (number := options["constraint"]) is not None:
        constraint = run.handles.get(number, ConstraintState)
        constraint.engine_id_for(context.model)  # or a refusal
    if (number := options["mask"]) is not None:
        mask = run.handles.get(number, MaskState)
        mask.require_model(context.model)
    settings = Settings(
        to_sampling(sampling, context.model, run.draw_seed),
        to_stop(stop, context.model),
        to_num_logprobs(options),
        constraint,
        mask,
        options["chunk-interval-ns"] if options["streaming"] else None,
    )

    def find() -> Program:
        try:
            return run.find_controller(controller)
        except TartletError as error:
            code = ErrorCode.NOT_FOUND if error.code == "not_found" else ErrorCode.PROGRAM_FAILED
            raise refusal(code, error.message, error.hint) from error

    def start(program: Program) -> int:
        run.check_controllers()
        if context.chat.state.needs_cue:
            context.cue()
        return run.handles.add(ControlledGeneration(context, program, config, settings))

    return run.call_in_worker(find, lambda program: when_idle(context, lambda: start(program)))


def ready(fiber: RunFiber, number: int) -> int:
    """Give the event that says that there is something to read."""
    return fiber.state.handles.get(number, ControlledGeneration).event.number


def read(fiber: RunFiber, number: int) -> dict[str, object]:
    """Give what has come since the last read."""
    chunks, has_ended = fiber.state.handles.get(number, ControlledGeneration).read()
    return {"chunks": [_chunk_record(*chunk) for chunk in chunks], "ended": has_ended}


def cancel(fiber: RunFiber, number: int) -> None:
    """End all sequences at the next step."""
    fiber.state.handles.get(number, ControlledGeneration).cancel()


def drop_controlled(fiber: RunFiber, number: int) -> None:
    """Free a generation, and cancel it."""
    fiber.state.handles.remove(number, ControlledGeneration).drop()


def _chunk_record(number: int, chunk: SequenceChunk) -> dict[str, object]:
    return {
        "sequence": number,
        "text-backtrack": chunk.text_backtrack,
        "text": chunk.text,
        "token-backtrack": chunk.token_backtrack,
        "tokens": chunk.token_ids,
        "log-probabilities": [position_record(position) for position in chunk.logprobs],
        "finish": None if chunk.finish is None else finish_record(chunk.finish),
    }


INTERFACE: Mapping[str, HostFunction] = {
    "controlled": drop_controlled,
    "[method]controlled.ready": ready,
    "[method]controlled.read": read,
    "[method]controlled.cancel": cancel,
    "control": control,
}
