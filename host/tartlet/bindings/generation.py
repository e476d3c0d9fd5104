"""Binding of `generation` in wit/: generating text from a context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tartlet.bindings._sampling import to_num_logprobs, to_sampling, to_speculation, to_stop
from tartlet.bindings.contexts import when_idle
from tartlet.runtime.constraint import ConstraintState
from tartlet.runtime.context import ContextState
from tartlet.runtime.generation import GenerationState, UnreadChunk
from tartlet.runtime.mask import MaskState
from tartlet.runtime.run_state import RunFiber
from tartlet.wasm.host_function import HostFunction
from tartlet_engine.api import Finished, PositionLogprobs, TokenLogprob


def generate(
    fiber: RunFiber, context_number: int, sampling: dict[str, Any], stop: dict[str, Any], options: dict[str, Any]
) -> object:
    """Start a generation at the end of the context."""
    run = fiber.state
    run.link.catch_up()
    context = run.handles.get(context_number, ContextState)
    checked_sampling = to_sampling(sampling, context.model, run.draw_seed)
    checked_stop = to_stop(stop, context.model)
    num_logprobs = to_num_logprobs(options)
    speculation = to_speculation(options, context.model)
    constraint_id = None
    if (number := options["constraint"]) is not None:
        constraint_id = run.handles.get(number, ConstraintState).engine_id_for(context.model)
    mask_id = None
    if (number := options["mask"]) is not None:
        mask_id = run.handles.get(number, MaskState).engine_id_for(context.model)

    def start() -> int:
        if context.chat.state.needs_cue:
            context.cue()
        context.check_generation()
        interval_ns = options["chunk-interval-ns"] if options["streaming"] else None
        generation = GenerationState(
            context,
            checked_sampling,
            checked_stop,
            interval_ns,
            num_logprobs=num_logprobs,
            constraint_id=constraint_id,
            speculation=speculation,
            mask_id=mask_id,
        )
        return run.handles.add(generation)

    return when_idle(context, start)


def ready(fiber: RunFiber, number: int) -> int:
    """Give the event that says that there is something to read."""
    return fiber.state.handles.get(number, GenerationState).event.number


def read(fiber: RunFiber, number: int) -> dict[str, object]:
    """Give what has come since the last read."""
    fiber.state.link.catch_up()
    return _chunk_record(fiber.state.handles.get(number, GenerationState).read())


def next_chunk(fiber: RunFiber, number: int) -> object:
    """Give what has come since the last read, as soon as there is something."""
    run = fiber.state
    run.link.catch_up()
    generation = run.handles.get(number, GenerationState)
    return run.events.when_ready(generation.event, lambda: _chunk_record(generation.read()))


def cancel(fiber: RunFiber, number: int) -> None:
    """End the generation at the next step."""
    fiber.state.handles.get(number, GenerationState).cancel()


def drop_generation(fiber: RunFiber, number: int) -> None:
    """Free a generation, and cancel it."""
    fiber.state.handles.remove(number, GenerationState).drop()


def _chunk_record(chunk: UnreadChunk) -> dict[str, object]:
    return {
        "text": "".join(chunk.text),
        "tokens": chunk.token_ids,
        "log-probabilities": [position_record(position) for position in chunk.logprobs],
        "finish": None if chunk.finish is None else finish_record(chunk.finish),
    }


def position_record(position: PositionLogprobs) -> dict[str, object]:
    """The `position-log-probabilities` record of a position."""
    return {"chosen": _logprob_record(position.chosen), "top": [_logprob_record(entry) for entry in position.top]}


def _logprob_record(entry: TokenLogprob) -> dict[str, object]:
    return {"token": entry.token_id, "log-probability": entry.logprob}


def finish_record(finished: Finished) -> dict[str, object]:
    """The `finish` record of an end."""
    usage = finished.usage
    return {
        "reason": finished.reason.value,
        "stop-string": finished.stop_string,
        "usage": {
            "prompt-tokens": usage.prompt_tokens,
            "cached-tokens": usage.cached_tokens,
            "generated-tokens": usage.generated_tokens,
            "forced-tokens": usage.forced_tokens,
            "draft-tokens": usage.draft_tokens,
            "accepted-tokens": usage.accepted_tokens,
            "pages": usage.pages,
            "shared-pages": usage.shared_pages,
            "first-token-ns": usage.first_token_ns,
            "total-ns": usage.total_ns,
        },
    }


INTERFACE: Mapping[str, HostFunction] = {
    "generation": drop_generation,
    "[method]generation.ready": ready,
    "[method]generation.read": read,
    "[method]generation.next": next_chunk,
    "[method]generation.cancel": cancel,
    "generate": generate,
}
