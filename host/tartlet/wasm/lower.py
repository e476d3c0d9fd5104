"""Lowering: from Python objects to component values in C memory.

One closure per WIT type, made once when a component is linked. A value is checked before it is written: Wasmtime
aborts the process on a string that is not UTF-8, and a wrong number would be cut off silently. What is written is a
whole value at every moment, owned by what holds it (boxes and lists are linked in first and then filled), so that a
failure half-way leaves nothing unowned and nothing that could not be freed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wasmtime.component import _types as wit_types

from tartlet.wasm import lower_compound as compound
from tartlet.wasm import lower_plain as plain
from tartlet.wasm.lower_plain import Lower, LoweringError
from tartlet.wasm.values import FLOATS, INTEGERS, NUMBERS, reject_ambiguous_option

__all__ = ["Lower", "LoweringError", "lowerer"]

ResourceNumber = Callable[[Any], int]
"""The number under which a resource type was registered with the linker."""


def lowerer(wit_type: Any, resource_number: ResourceNumber) -> Lower:
    """Make the lower closure of a WIT type. Raises `TypeError` for a type that has no Python form."""
    kind = type(wit_type)
    if kind in INTEGERS:
        return plain.integer(kind)
    if kind in FLOATS:
        return plain.floating(kind)
    if kind is wit_types.EnumType:
        return plain.enum(wit_type.names)
    if kind is wit_types.FlagsType:
        return plain.flags(wit_type.names)
    if kind is wit_types.OwnType:
        return plain.own(resource_number(wit_type.ty))
    if kind in _WITHOUT_PARTS:
        return _WITHOUT_PARTS[kind]()
    return _lowerer_of_parts(wit_type, lambda part: lowerer(part, resource_number))


_WITHOUT_PARTS: dict[Any, Callable[[], Lower]] = {
    wit_types.Bool: plain.boolean,
    wit_types.Char: plain.char,
    wit_types.String: plain.string,
}


def _lowerer_of_parts(wit_type: Any, lower_of: Callable[[Any], Lower]) -> Lower:
    def optional(part: Any) -> Lower | None:
        return None if part is None else lower_of(part)

    kind = type(wit_type)
    if kind is wit_types.ListType:
        number = NUMBERS.get(type(wit_type.element))
        return compound.list_of(lower_of(wit_type.element)) if number is None else plain.number_list(*number)
    if kind is wit_types.TupleType:
        return compound.tuple_of([lower_of(element) for element in wit_type.elements])
    if kind is wit_types.RecordType:
        return compound.record({name: lower_of(field) for name, field in wit_type.fields})
    if kind is wit_types.VariantType:
        return compound.variant({name: optional(payload) for name, payload in wit_type.cases})
    if kind is wit_types.OptionType:
        reject_ambiguous_option(wit_type)
        return compound.option(lower_of(wit_type.payload))
    if kind is wit_types.ResultType:
        return compound.result(optional(wit_type.ok), optional(wit_type.err))
    raise TypeError(f"values of type {kind.__name__} cannot be lowered")
