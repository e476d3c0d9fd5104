"""Binding of the masks of `constraints` in wit/: sets of tokens, which stay on the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tartlet.runtime.guest_state import GuestFiber
from tartlet.runtime.mask import MOST_OTHERS, MaskState, all_bits, bits_of_tokens, bits_of_words
from tartlet.runtime.model import ModelHandle
from tartlet.runtime.refusal import invalid_argument
from tartlet.wasm.host_function import HostFunction


def tokens(fiber: GuestFiber, model: int, token_ids: list[int]) -> int:
    """Make a mask of some tokens."""
    handle = fiber.state.handles.get(model, ModelHandle)
    return _add(fiber, handle, bits_of_tokens(handle, token_ids))


def words(fiber: GuestFiber, model: int, packed: list[int]) -> int:
    """Make a mask of packed bits."""
    handle = fiber.state.handles.get(model, ModelHandle)
    return _add(fiber, handle, bits_of_words(handle, packed))


def all_tokens(fiber: GuestFiber, model: int) -> int:
    """Make a mask of all tokens."""
    handle = fiber.state.handles.get(model, ModelHandle)
    return _add(fiber, handle, all_bits(handle))


def intersection(fiber: GuestFiber, number: int, others: list[int]) -> int:
    """Make a mask of what all have."""
    mask = fiber.state.handles.get(number, MaskState)
    bits = mask.bits
    for other in _others(fiber, mask, others):
        bits &= other
    return _add(fiber, mask.model, bits)


def union(fiber: GuestFiber, number: int, others: list[int]) -> int:
    """Make a mask of what any has."""
    mask = fiber.state.handles.get(number, MaskState)
    bits = mask.bits
    for other in _others(fiber, mask, others):
        bits |= other
    return _add(fiber, mask.model, bits)


def complement(fiber: GuestFiber, number: int) -> int:
    """Make a mask of what this one does not have."""
    mask = fiber.state.handles.get(number, MaskState)
    return _add(fiber, mask.model, all_bits(mask.model) & ~mask.bits)


def restrict(fiber: GuestFiber, number: int, token_ids: list[int]) -> int:
    """Make a mask of those of some tokens that this one has."""
    mask = fiber.state.handles.get(number, MaskState)
    return _add(fiber, mask.model, mask.bits & bits_of_tokens(mask.model, token_ids))


def count(fiber: GuestFiber, number: int) -> int:
    """Count the tokens."""
    return fiber.state.handles.get(number, MaskState).bits.bit_count()


def allows(fiber: GuestFiber, number: int, token_id: int) -> bool:
    """Tell whether a token is in it."""
    mask = fiber.state.handles.get(number, MaskState)
    mask.model.check_token(token_id)
    return bool(mask.bits >> token_id & 1)


def mask_id(fiber: GuestFiber, number: int) -> int:
    """Give the number by which others take it: that of the handle."""
    fiber.state.handles.get(number, MaskState)
    return number


def drop_mask(fiber: GuestFiber, number: int) -> None:
    """Free a mask."""
    fiber.state.handles.remove(number, MaskState).drop()


def _others(fiber: GuestFiber, mask: MaskState, numbers: list[int]) -> Iterator[int]:
    """The bits of other masks of the same model."""
    if len(numbers) > MOST_OTHERS:
        raise invalid_argument(f"{len(numbers):,} masks; at most {MOST_OTHERS} can be put together with one")
    for number in numbers:
        other = fiber.state.handles.get(number, MaskState)
        other.require_model(mask.model)
        yield other.bits


def _add(fiber: GuestFiber, model: ModelHandle, bits: int) -> int:
    return fiber.state.handles.add(MaskState(fiber.state, model, bits))


FUNCTIONS: Mapping[str, HostFunction] = {
    "mask": drop_mask,
    "[static]mask.tokens": tokens,
    "[static]mask.words": words,
    "[static]mask.all": all_tokens,
    "[method]mask.intersection": intersection,
    "[method]mask.union": union,
    "[method]mask.complement": complement,
    "[method]mask.restrict": restrict,
    "[method]mask.count": count,
    "[method]mask.allows": allows,
    "[method]mask.id": mask_id,
}
