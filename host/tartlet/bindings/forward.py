"""Binding of `forward` in wit/: provisional tokens after a context's last one."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any

from tartlet.bindings._sampling import to_sampling
from tartlet.bindings.contexts import when_idle
from tartlet.runtime.context import ContextState
from tartlet.runtime.forward import ForwardPass
from tartlet.runtime.model import ModelHandle
from tartlet.runtime.refusal import invalid_argument
from tartlet.runtime.run_state import RunFiber
from tartlet.wasm.host_function import HostFunction
from tartlet_engine.api import Forwarded, RowRequest, RowResult, TokenLogprob

MAX_REQUESTS = 512


def forward(fiber: RunFiber, context_number: int, token_ids: list[int], options: dict[str, Any]) -> object:
    """Start a pass at the end of the context."""
    run = fiber.state
    run.link.catch_up()
    context = run.handles.get(context_number, ContextState)
    context.model.check_tokens(token_ids)
    if len(options["requests"]) > MAX_REQUESTS:
        raise invalid_argument(f"{len(options['requests']):,} requests; a pass takes {MAX_REQUESTS}")
    requests = tuple(_request(each, context.model, run.draw_seed) for each in options["requests"])
    parents = options["parents"]

    def start() -> int:
        if context.chat.state.needs_cue:
            context.cue()
        if not context.length:
            raise invalid_argument("the context is empty", "Fill it before a forward pass.")
        return run.handles.add(
            ForwardPass(
                context,
                token_ids,
                parents=None if parents is None else [row - 1 for row in parents],
                positions=options["positions"],
                requests=requests,
                logprobs=options["log-probabilities"],
            )
        )

    return when_idle(context, start)


def ready(fiber: RunFiber, number: int) -> int:
    """Give the event that says that the pass is computed."""
    return fiber.state.handles.get(number, ForwardPass).event.number


def read(fiber: RunFiber, number: int) -> dict[str, object]:
    """Give what it has found."""
    return _findings_record(fiber.state.handles.get(number, ForwardPass).read())


def commit(fiber: RunFiber, number: int, path: list[int]) -> None:
    """Append a path to the context."""
    fiber.state.handles.get(number, ForwardPass).commit([row - 1 for row in path])


def discard(fiber: RunFiber, number: int) -> None:
    """Forget the pass."""
    fiber.state.handles.get(number, ForwardPass).discard()


def drop_pass(fiber: RunFiber, number: int) -> None:
    """Free a pass, and forget it."""
    fiber.state.handles.remove(number, ForwardPass).drop()


def _request(record: dict[str, Any], model: ModelHandle, draw_seed: Callable[[], int]) -> RowRequest:
    model.check_tokens(record["given"], "given token")
    sampling = record["sampling"]
    return RowRequest(
        row=record["row"] - 1,
        sampling=None if sampling is None else to_sampling(sampling, model, draw_seed),
        sample_index=record["sample-index"],
        top=record["top"],
        token_ids=tuple(record["given"]),
        entropy=record["entropy"],
        logits=record["logits"],
    )


def _findings_record(found: Forwarded) -> dict[str, object]:
    return {"log-probabilities": list(found.logprobs), "rows": [_row_record(row) for row in found.rows]}


def _row_record(row: RowResult) -> dict[str, object]:
    return {
        "sampled": None if row.sampled is None else _logprob_record(row.sampled),
        "top": [_logprob_record(entry) for entry in row.top],
        "given": list(row.logprobs),
        "entropy": row.entropy,
        "logits": _packed(row.logits),
    }


def _logprob_record(entry: TokenLogprob) -> dict[str, object]:
    return {"token": entry.token_id, "log-probability": entry.logprob}


def _packed(logits: bytes) -> list[int]:
    """The bits of little-endian float32 values, two in each number."""
    return array("Q", logits + bytes(-len(logits) % 8)).tolist()


INTERFACE: Mapping[str, HostFunction] = {
    "pass": drop_pass,
    "[method]pass.ready": ready,
    "[method]pass.read": read,
    "[method]pass.commit": commit,
    "[method]pass.discard": discard,
    "forward": forward,
}
