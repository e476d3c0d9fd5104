"""Binding of `constraints` in wit/: what a generation may write."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tartlet.bindings import _masks, _matchers
from tartlet.runtime.constraint import MOST_PARTS, ConstraintState
from tartlet.runtime.guest_state import GuestFiber
from tartlet.runtime.mask import MaskState
from tartlet.runtime.model import ModelHandle
from tartlet.wasm.host_function import HostFunction
from tartlet_engine.api import Combination, ConstraintKind


def json_schema(fiber: GuestFiber, model: int, schema: str) -> int:
    """Begin to compile a JSON schema."""
    return _compile(fiber, model, ConstraintKind.JSON_SCHEMA, schema)


def regex(fiber: GuestFiber, model: int, pattern: str) -> int:
    """Begin to compile a regular expression."""
    return _compile(fiber, model, ConstraintKind.REGEX, pattern)


def lark(fiber: GuestFiber, model: int, grammar: str) -> int:
    """Begin to compile a grammar."""
    return _compile(fiber, model, ConstraintKind.LARK, grammar)


def choices(fiber: GuestFiber, model: int, texts: list[str]) -> int:
    """Begin to compile a choice of texts."""
    return _compile(fiber, model, ConstraintKind.CHOICES, json.dumps(texts))


def substring(fiber: GuestFiber, model: int, text: str) -> int:
    """Begin to compile the runs of words of a text."""
    return _compile(fiber, model, ConstraintKind.SUBSTRING, text)


def tokens(fiber: GuestFiber, model: int, allowed: list[int]) -> int:
    """Begin to compile a set of tokens."""
    fiber.state.handles.get(model, ModelHandle).check_tokens(allowed)
    return _compile(fiber, model, ConstraintKind.TOKENS, json.dumps(list(allowed)))


def of_mask(fiber: GuestFiber, mask: int) -> int:
    """Make a constraint of a mask."""
    handles = fiber.state.handles
    return handles.add(ConstraintState.of_mask(handles.get(mask, MaskState)))


def all_of(fiber: GuestFiber, parts: list[int]) -> int:
    """Put constraints together, all of which hold."""
    return _combine(fiber, Combination.ALL_OF, parts)


def any_of(fiber: GuestFiber, parts: list[int]) -> int:
    """Put constraints together, any of which holds."""
    return _combine(fiber, Combination.ANY_OF, parts)


def ready(fiber: GuestFiber, number: int) -> int:
    """Give the event that says that it is compiled, or why not."""
    return fiber.state.handles.get(number, ConstraintState).event.number


def constraint_id(fiber: GuestFiber, number: int) -> int:
    """Give the number by which `generate` takes it: that of the handle."""
    fiber.state.handles.get(number, ConstraintState)
    return number


def drop_constraint(fiber: GuestFiber, number: int) -> None:
    """Free a constraint."""
    fiber.state.handles.remove(number, ConstraintState).drop()


def _compile(fiber: GuestFiber, model: int, kind: ConstraintKind, text: str) -> int:
    run = fiber.state
    return run.handles.add(ConstraintState.of_text(run, run.handles.get(model, ModelHandle), kind, text))


def _combine(fiber: GuestFiber, combination: Combination, parts: list[int]) -> int:
    handles = fiber.state.handles
    found = [handles.get(part, ConstraintState) for part in parts[: MOST_PARTS + 1]]
    return handles.add(ConstraintState.of_parts(combination, found))


INTERFACE: Mapping[str, HostFunction] = {
    "constraint": drop_constraint,
    "[static]constraint.json-schema": json_schema,
    "[static]constraint.regex": regex,
    "[static]constraint.lark": lark,
    "[static]constraint.choices": choices,
    "[static]constraint.substring": substring,
    "[static]constraint.tokens": tokens,
    "[static]constraint.of-mask": of_mask,
    "[static]constraint.all-of": all_of,
    "[static]constraint.any-of": any_of,
    "[method]constraint.ready": ready,
    "[method]constraint.id": constraint_id,
    **_masks.FUNCTIONS,
    **_matchers.FUNCTIONS,
}
