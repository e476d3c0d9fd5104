"""Binding of `models` in wit/: facts about models, and their tokenizers."""

from __future__ import annotations

from collections.abc import Mapping

from tartlet.bindings._text import process_text
from tartlet.runtime.guest_state import GuestFiber
from tartlet.runtime.model import ModelHandle, info_record
from tartlet.runtime.refusal import refusal
from tartlet.wasm.host_function import HostFunction
from tartlet_engine.api import ErrorCode


def open_model(fiber: GuestFiber, name: str | None) -> int:
    """Open the model of that name, or the default."""
    run = fiber.state
    client = run.link.client
    models = client.models
    if name is None:
        name = next(iter(models))
    if name not in models:
        raise refusal(ErrorCode.NOT_FOUND, f"there is no model {name[:200]!r}", f"There are: {', '.join(models)}.")
    return run.handles.add(ModelHandle(models[name], client.text(name)))


def info(fiber: GuestFiber, model: int) -> dict[str, object]:
    """Give the model's facts."""
    return fiber.state.handles.get(model, ModelHandle).record


def tokenize(fiber: GuestFiber, model: int, text: str) -> object:
    """Give the token ids of a text."""
    handle = fiber.state.handles.get(model, ModelHandle)
    return process_text(fiber.state, len(text), lambda: handle.text.encode(text), lambda token_ids: token_ids)


def detokenize(fiber: GuestFiber, model: int, token_ids: list[int]) -> object:
    """Give the text of token ids."""
    handle = fiber.state.handles.get(model, ModelHandle)
    handle.check_tokens(token_ids)
    return process_text(fiber.state, len(token_ids), lambda: handle.text.decode(token_ids), lambda text: text)


def token_bytes(fiber: GuestFiber, model: int, token_id: int) -> bytes:
    """Give the bytes of one token."""
    handle = fiber.state.handles.get(model, ModelHandle)
    handle.check_token(token_id)
    return handle.text.token_bytes(token_id)


def vocabulary(fiber: GuestFiber, model: int, first: int, count: int) -> object:
    """Give the bytes of many tokens as one text."""
    handle = fiber.state.handles.get(model, ModelHandle)
    handle.check_token(first)
    end = min(first + count, handle.info.vocabulary_size)
    return process_text(fiber.state, end - first, lambda: handle.vocabulary(first, end), lambda text: text)


def drop_model(fiber: GuestFiber, model: int) -> None:
    """Free a model handle."""
    fiber.state.handles.remove(model, ModelHandle)


def list_models(fiber: GuestFiber) -> list[dict[str, object]]:
    """Give the facts of every model, the default first."""
    return [info_record(model) for model in fiber.state.link.client.models.values()]


INTERFACE: Mapping[str, HostFunction] = {
    "model": drop_model,
    "[static]model.open": open_model,
    "[method]model.info": info,
    "[method]model.tokenize": tokenize,
    "[method]model.detokenize": detokenize,
    "[method]model.token-bytes": token_bytes,
    "[method]model.vocabulary": vocabulary,
    "list-models": list_models,
}
