"""Binding of `contexts` in wit/: sequences of tokens in the KV cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tartlet.bindings import _saved
from tartlet.bindings._text import process_text
from tartlet.runtime.context import ContextState
from tartlet.runtime.flush import EvictOperation, start_flush
from tartlet.runtime.model import ModelHandle
from tartlet.runtime.refusal import refusal
from tartlet.runtime.run_state import RunFiber
from tartlet.runtime.saved import check_name
from tartlet.runtime.steps import StepsState
from tartlet.wasm.host_function import SUSPEND, HostFunction
from tartlet_engine.api import ErrorCode


def when_idle(context: ContextState, action: Callable[[], object]) -> object:
    """Carry out `action`: at once, or, while tokens are evicted or a cancelled generation comes to its end, after that.

    Raises the refusal `unavailable` while a generation runs, or a forward pass is neither committed nor discarded.
    """
    context.check_usable()
    if context.forward is not None:
        raise refusal(
            ErrorCode.UNAVAILABLE,
            "the context is busy: a forward pass on it is neither committed nor discarded",
            "Commit or discard the pass first, or work on a fork.",
        )
    if context.generation is None and context.eviction is None:
        return action()
    if context.generation is not None and not context.generation.is_cancelled:
        raise refusal(
            ErrorCode.UNAVAILABLE,
            "the context is busy: a generation runs on it",
            "Await, cancel or stop it first, or work on a fork.",
        )
    context.call_when_idle(lambda: context.run.complete(action))
    return SUSPEND


def create(fiber: RunFiber, model: int, adapter: str | None) -> int:
    """Make an empty context, with an adapter or without."""
    run = fiber.state
    handle = run.handles.get(model, ModelHandle)
    if adapter is not None:
        handle.check_adapter(adapter)
    return run.handles.add(ContextState.create(run, handle, adapter))


def fill(fiber: RunFiber, number: int, text: str) -> object:
    """Append a text."""
    context = _get(fiber, number)
    encode = context.model.text.encode
    return when_idle(context, lambda: process_text(fiber.state, len(text), lambda: encode(text), context.append_text))


def fill_tokens(fiber: RunFiber, number: int, token_ids: list[int]) -> object:
    """Append token ids."""
    context = _get(fiber, number)
    context.model.check_tokens(token_ids)
    return when_idle(context, lambda: context.append_text(token_ids))


def fill_message(fiber: RunFiber, number: int, role: str, text: str) -> object:
    """Append a chat message, after closing an assistant's turn that is open."""
    context = _get(fiber, number)
    context.model.check_chat()

    def work() -> tuple[list[int], list[int]]:
        roles, closing = context.close_turn()
        return closing, context.model.text.chat_message(roles, role, text)

    def append(tokens: tuple[list[int], list[int]]) -> None:
        context.append_message(role, *tokens)

    return when_idle(context, lambda: process_text(fiber.state, len(text), work, append))


def cue(fiber: RunFiber, number: int) -> object:
    """Begin the assistant's turn."""
    context = _get(fiber, number)
    return when_idle(context, context.cue)


def flush(fiber: RunFiber, number: int) -> object:
    """Start to compute what has been filled, and give the event that tells its end."""
    context = _get(fiber, number)
    return when_idle(context, lambda: start_flush(context))


def fork(fiber: RunFiber, number: int) -> object:
    """Make a context with the same tokens, sharing the pages."""
    context = _get(fiber, number)
    context.check_usable()
    if isinstance(context.generation, StepsState) and context.generation.is_answered:
        raise refusal(ErrorCode.UNAVAILABLE, "a step is being carried out on the context", "Fork after its outcome.")
    if context.eviction is not None:
        return when_idle(context, lambda: fiber.state.handles.add(context.fork()))
    return fiber.state.handles.add(context.fork())


def length(fiber: RunFiber, number: int) -> int:
    """Give the number of tokens."""
    return _get(fiber, number).length


def positions(fiber: RunFiber, number: int) -> int:
    """Give the number of positions that are taken."""
    return _get(fiber, number).num_positions


def tokens(fiber: RunFiber, number: int) -> list[int]:
    """Give all tokens."""
    return _get(fiber, number).tokens.tolist()


def truncate(fiber: RunFiber, number: int, new_length: int) -> object:
    """Drop the tokens after the first `new_length`."""
    context = _get(fiber, number)
    return when_idle(context, lambda: context.truncate(new_length))


def evict(fiber: RunFiber, number: int, start: int, end: int) -> object:
    """Start to drop tokens out of the middle, and give the event that tells its end."""
    context = _get(fiber, number)

    def begin() -> int:
        context.check_evictable(start, end)
        return EvictOperation(context, start, end).event.number

    return when_idle(context, begin)


def save(fiber: RunFiber, number: int, name: str, options: dict[str, Any]) -> object:
    """Start to save the context under a name, and give the event that tells its end."""
    context = _get(fiber, number)
    check_name(name)
    ttl_ms = _saved.to_ttl_ms(options)
    return when_idle(context, lambda: _saved.start_save(context, name, ttl_ms, overwrite=options["overwrite"]))


def drop_context(fiber: RunFiber, number: int) -> None:
    """Free a context."""
    fiber.state.handles.remove(number, ContextState).drop()


def _get(fiber: RunFiber, number: int) -> ContextState:
    """The context, up to date with what the engine has generated on it."""
    fiber.state.link.catch_up()
    return fiber.state.handles.get(number, ContextState)


INTERFACE: Mapping[str, HostFunction] = {
    "context": drop_context,
    "[static]context.create": create,
    "[method]context.fill": fill,
    "[method]context.fill-tokens": fill_tokens,
    "[method]context.fill-message": fill_message,
    "[method]context.cue": cue,
    "[method]context.flush": flush,
    "[method]context.fork": fork,
    "[method]context.length": length,
    "[method]context.positions": positions,
    "[method]context.tokens": tokens,
    "[method]context.truncate": truncate,
    "[method]context.evict": evict,
    "[method]context.save": save,
    **_saved.FUNCTIONS,
}
