"""Lifting: from component values in C memory to Python objects.

One closure per WIT type, made once when a component is linked; no type is looked at during a call. Wasmtime has checked
the values (lengths, UTF-8, case names), so lifting does not fail, except for a handle that is not the host's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wasmtime.component import _types as wit_types

from tartlet.errors import LimitExceededError
from tartlet.wasm.library import Words, check, ffi, lib
from tartlet.wasm.values import (
    CHARS,
    ENTRY_WORDS,
    FLOATS,
    INTEGERS,
    NAME_WORDS,
    NUMBERS,
    STRIDES,
    VALUE_WORDS,
    WORDS,
    reject_ambiguous_option,
)

Lift = Callable[[Words, int, int], Any]
"""`lift(words, at, context)`: the value that starts at word `at`. The store's context is needed for handles only."""

_cast, _unpack, _buffer, _new = ffi.cast, ffi.unpack, ffi.buffer, ffi.new


MAX_ITEMS = 65_536
"""Of all lists within one argument or result, but for lists of numbers. Each of their items is looked at by itself,
some 80 ms for so many, on the thread that other runs wait for."""

_num_items: dict[int, int] = {}
"""How many there were so far, of the values that are being lifted now, by their store's context."""


def lifter(wit_type: Any) -> Lift:
    """Make the lift closure of an argument's or a result's type. Raises `TypeError` for one without a Python form.

    The closure raises `LimitExceededError` for lists of more than `MAX_ITEMS`.
    """
    lift = _lifter(wit_type)
    if not _holds_lists(wit_type):
        return lift

    def lift_counted(words: Words, at: int, context: int) -> Any:
        _num_items[context] = 0
        try:
            return lift(words, at, context)
        finally:
            del _num_items[context]

    return lift_counted


def _lifter(wit_type: Any) -> Lift:
    kind = type(wit_type)
    if kind in INTEGERS:
        return _integer(kind)
    if kind in FLOATS:
        return _float(kind)
    if kind is wit_types.ListType and type(wit_type.element) in NUMBERS:
        return _number_list(NUMBERS[type(wit_type.element)][1])
    make = _MAKERS.get(kind)
    if make is None:
        raise TypeError(f"values of type {kind.__name__} cannot be lifted")
    return make(wit_type)


def _holds_lists(wit_type: Any) -> bool:
    """Whether lists of anything but numbers are within values of a type."""
    match wit_type:
        case wit_types.ListType():
            return type(wit_type.element) not in NUMBERS
        case wit_types.TupleType():
            parts = wit_type.elements
        case wit_types.RecordType():
            parts = [part for _, part in wit_type.fields]
        case wit_types.VariantType():
            parts = [part for _, part in wit_type.cases]
        case wit_types.OptionType():
            parts = [wit_type.payload]
        case wit_types.ResultType():
            parts = [wit_type.ok, wit_type.err]
        case _:
            return False
    return any(_holds_lists(part) for part in parts)


def text_at(words: Words, at: int) -> str:
    """The text whose size and address are at word `at`. No string is unpacked when it is empty: the address is none."""
    size = words[at]
    return _unpack(_cast(CHARS, words[at + 1]), size).decode() if size else ""


def _integer(kind: Any) -> Lift:
    code = INTEGERS[kind][1]
    bits = 8 * ffi.sizeof(f"uint{kind.__name__[1:]}_t")
    if code == "Q":
        return lambda words, at, context: words[at + 1]
    mask = (1 << bits) - 1
    if code.isupper():
        return lambda words, at, context: words[at + 1] & mask
    half = 1 << (bits - 1)  # two's complement: flip the sign bit, then take its weight off
    return lambda words, at, context: ((words[at + 1] & mask) ^ half) - half


def _float(kind: Any) -> Lift:
    pointer = ffi.typeof("float *" if kind is wit_types.F32 else "double *")
    return lambda words, at, context: _cast(pointer, words + at + 1)[0]


def _bool(_type: Any) -> Lift:
    return lambda words, at, context: words[at + 1] & 1 == 1


def _char(_type: Any) -> Lift:
    return lambda words, at, context: chr(words[at + 1] & 0xFFFFFFFF)


def _text(_type: Any) -> Lift:
    def lift_text(words: Words, at: int, context: int) -> str:
        size = words[at + 1]
        return _unpack(_cast(CHARS, words[at + 2]), size).decode() if size else ""

    return lift_text


def _number_list(code: str) -> Lift:
    """Read a list of numbers as one strided copy."""
    first, step = STRIDES[code]

    def lift_bytes(words: Words, at: int, context: int) -> bytes:
        size = words[at + 1]
        return bytes(_buffer(_cast(CHARS, words[at + 2]), 32 * size))[first::step] if size else b""

    def lift_numbers(words: Words, at: int, context: int) -> list[Any]:
        size = words[at + 1]
        if not size:
            return []
        memory = memoryview(_buffer(_cast(CHARS, words[at + 2]), 32 * size))
        return memory.cast("B").cast(code)[first::step].tolist()  # type: ignore[call-overload, no-any-return]

    return lift_bytes if code == "B" else lift_numbers


def _list(list_type: Any) -> Lift:
    lift = _lifter(list_type.element)

    def lift_list(words: Words, at: int, context: int) -> list[Any]:
        if not words[at + 1]:
            return []
        _num_items[context] += words[at + 1]
        if _num_items[context] > MAX_ITEMS:
            raise LimitExceededError(
                "call_limit",
                limit="the number of items in one argument",
                used=_num_items[context],
                allowed=MAX_ITEMS,
                hint="Use several calls, or fewer items.",
            )
        items = _cast(WORDS, words[at + 2])
        return [lift(items, i, context) for i in range(0, VALUE_WORDS * words[at + 1], VALUE_WORDS)]

    return lift_list


def _tuple(tuple_type: Any) -> Lift:
    lifts = [(VALUE_WORDS * i, _lifter(element)) for i, element in enumerate(tuple_type.elements)]

    def lift_tuple(words: Words, at: int, context: int) -> tuple[Any, ...]:
        items = _cast(WORDS, words[at + 2])
        return tuple([lift(items, i, context) for i, lift in lifts])

    return lift_tuple


def _record(record_type: Any) -> Lift:
    """Read the fields by position: Wasmtime hands them over in the order of the type."""
    fields = [(name, ENTRY_WORDS * i + NAME_WORDS, _lifter(ty)) for i, (name, ty) in enumerate(record_type.fields)]

    def lift_record(words: Words, at: int, context: int) -> dict[str, Any]:
        entries = _cast(WORDS, words[at + 2])
        return {name: lift(entries, i, context) for name, i, lift in fields}

    return lift_record


def _variant(variant_type: Any) -> Lift:
    cases = {name: None if payload is None else _lifter(payload) for name, payload in variant_type.cases}

    def lift_variant(words: Words, at: int, context: int) -> tuple[str, Any]:
        name = text_at(words, at + 1)
        lift = cases[name]
        return name, None if lift is None else lift(_cast(WORDS, words[at + 3]), 0, context)

    return lift_variant


def _option(option_type: Any) -> Lift:
    reject_ambiguous_option(option_type)
    lift = _lifter(option_type.payload)

    def lift_option(words: Words, at: int, context: int) -> Any:
        address = words[at + 1]
        return lift(_cast(WORDS, address), 0, context) if address else None

    return lift_option


def _result(result_type: Any) -> Lift:
    lift_ok, lift_err = (None if ty is None else _lifter(ty) for ty in (result_type.ok, result_type.err))

    def lift_result(words: Words, at: int, context: int) -> tuple[bool, Any]:
        is_ok = words[at + 1] & 1 == 1
        lift = lift_ok if is_ok else lift_err
        return is_ok, None if lift is None else lift(_cast(WORDS, words[at + 2]), 0, context)

    return lift_result


def _flags(_type: Any) -> Lift:
    def lift_flags(words: Words, at: int, context: int) -> frozenset[str]:
        names = _cast(WORDS, words[at + 2])
        return frozenset([text_at(names, i) for i in range(0, NAME_WORDS * words[at + 1], NAME_WORDS)])

    return lift_flags


def _resource(_type: Any) -> Lift:
    """Take the number that the host chose for a resource. This ends a borrow, and takes over what is owned."""

    def lift_resource(words: Words, at: int, context: int) -> int:
        host = _new("uintptr_t *")
        check(lib.wasmtime_component_resource_any_to_host(context, words[at + 1], host))
        rep: int = lib.wasmtime_component_resource_host_rep(host[0])
        lib.wasmtime_component_resource_host_delete(host[0])
        return rep

    return lift_resource


_MAKERS: dict[Any, Callable[[Any], Lift]] = {
    wit_types.Bool: _bool,
    wit_types.Char: _char,
    wit_types.String: _text,
    wit_types.EnumType: _text,
    wit_types.ListType: _list,
    wit_types.TupleType: _tuple,
    wit_types.RecordType: _record,
    wit_types.VariantType: _variant,
    wit_types.OptionType: _option,
    wit_types.ResultType: _result,
    wit_types.FlagsType: _flags,
    wit_types.OwnType: _resource,
    wit_types.BorrowType: _resource,
}
