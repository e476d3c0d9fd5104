"""The part of `contexts` in wit/ that deals with saved contexts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tartlet.runtime.context import ContextState
from tartlet.runtime.model import ModelHandle
from tartlet.runtime.refusal import invalid_argument
from tartlet.runtime.run_state import RunFiber
from tartlet.runtime.saved import MAX_TTL_NS, OpeningState, SaveOperation, call_engine, check_name
from tartlet.wasm.host_function import HostFunction
from tartlet_engine.api import DeleteSaved, ListSaved, SavedContext, SavedList


def to_ttl_ms(options: dict[str, Any]) -> int | None:
    """The time to live of a `save-options` record, in whole ms and not less. Raises a refusal."""
    ttl_ns: int | None = options["ttl-ns"]
    if ttl_ns is None:
        return None
    if not 0 < ttl_ns <= MAX_TTL_NS:
        raise invalid_argument(f"ttl-ns is {ttl_ns:,}; it must be 1 to {MAX_TTL_NS:,}, which is ten years")
    return -(-ttl_ns // 1_000_000)


def start_save(context: ContextState, name: str, ttl_ms: int | None, *, overwrite: bool) -> int:
    """Begin to save a context; the number of the event that becomes ready at its end."""
    return SaveOperation(context, name, ttl_ms, overwrite=overwrite).event.number


def open_saved(fiber: RunFiber, model: int, name: str) -> int:
    """Begin to open a saved context."""
    run = fiber.state
    handle = run.handles.get(model, ModelHandle)
    check_name(name)
    return run.handles.add(OpeningState(run, handle, name))


def ready(fiber: RunFiber, number: int) -> int:
    """Give the event that says that the context can be taken."""
    return fiber.state.handles.get(number, OpeningState).event.number


def take(fiber: RunFiber, number: int) -> int:
    """Give the context."""
    handles = fiber.state.handles
    return handles.add(handles.get(number, OpeningState).take())


def drop_opening(fiber: RunFiber, number: int) -> None:
    """Free an opening, and give it up."""
    fiber.state.handles.remove(number, OpeningState).drop()


def list_saved(fiber: RunFiber) -> object:
    """Give the saved contexts of the tenant."""
    run = fiber.state

    def records(event: SavedList) -> list[dict[str, object]]:
        return [_record(context) for context in event.contexts]

    return call_engine(run, lambda operation_id: ListSaved(operation_id, run.engine_id), records)


def delete_saved(fiber: RunFiber, name: str) -> object:
    """Delete a saved context of the tenant."""
    run = fiber.state
    check_name(name)
    return call_engine(run, lambda operation_id: DeleteSaved(operation_id, run.engine_id, name), lambda event: None)


def _record(context: SavedContext) -> dict[str, object]:
    return {
        "name": context.name,
        "model": context.model,
        "adapter": context.adapter,
        "tokens": context.num_tokens,
        "bytes": context.num_bytes,
        "expires-in-ns": None if context.expires_in_ms is None else context.expires_in_ms * 1_000_000,
    }


FUNCTIONS: Mapping[str, HostFunction] = {
    "opening": drop_opening,
    "[static]context.open": open_saved,
    "[method]opening.ready": ready,
    "[method]opening.take": take,
    "list-saved": list_saved,
    "delete-saved": delete_saved,
}
