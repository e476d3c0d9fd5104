"""Lowering: from Python objects to component values in C memory.

One closure per WIT type, made once when a component is linked. A value is checked before it is written: Wasmtime
aborts the process on a string that is not UTF-8, and a wrong number would be cut off silently. What is written is a
whole value at every moment, owned by what holds it (boxes and lists are linked in first and then filled), so that a
failure half-way leaves nothing unowned and nothing that could not be freed.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from wasmtime.component import _types as wit_types

from tartlet.wasm.host_function import Err
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
    Kind,
    reject_ambiguous_option,
)

Lower = Callable[[Words, int, Any, int], None]
"""`lower(words, at, value, context)`: write `value` at word `at`. The store's context is needed for handles only."""

ResourceNumber = Callable[[Any], int]
"""The number under which a resource type was registered with the linker."""

_cast, _memmove = ffi.cast, ffi.memmove
_new_text = lib.wasm_byte_vec_new  # copies into Wasmtime's allocator
_empty_value = ffi.new("uint64_t[4]")  # false; `val_new` copies it


class LoweringError(TypeError):
    """A Python value does not fit the WIT type that it should become."""

    def __init__(self, expected: str, value: object) -> None:
        self.path = ""
        self.problem = f"expected {expected}, got {type(value).__name__} {value!r:.100}"
        super().__init__(self.problem)

    def inside(self, part: str) -> LoweringError:
        """Note in which part of a larger value this is, from the inside out."""
        self.path = f"{part}.{self.path}" if self.path else part
        self.args = (f"{self.path}: {self.problem}",)
        return self


def lowerer(wit_type: Any, resource_number: ResourceNumber) -> Lower:
    """Make the lower closure of a WIT type. Raises `TypeError` for a type that has no Python form."""
    kind = type(wit_type)
    if kind in INTEGERS:
        return _integer(kind)
    if kind in FLOATS:
        return _float(kind)
    if kind is wit_types.ListType and type(wit_type.element) in NUMBERS:
        return _number_list(*NUMBERS[type(wit_type.element)])
    make = _MAKERS.get(kind)
    if make is None:
        raise TypeError(f"values of type {kind.__name__} cannot be lowered")
    return make(wit_type, resource_number)


def _encode(expected: str, value: object) -> bytes:
    """Encode a text. A lone surrogate is an error here; in Wasmtime it would end the process."""
    if not isinstance(value, str):
        raise LoweringError(expected, value)
    try:
        return value.encode()
    except UnicodeEncodeError as problem:
        raise LoweringError(f"{expected} of Unicode scalar values", value) from problem


def _new_box(words: Words, at: int) -> Words:
    """Allocate a value, link it in at word `at`, and return it to be filled."""
    box = lib.wasmtime_component_val_new(_empty_value)
    words[at] = int(_cast("uintptr_t", box))
    return box


def _integer(kind: Any) -> Lower:
    code, name = int(INTEGERS[kind][0]), kind.__name__.lower()
    bits = int(name[1:])
    low, high = (0, 1 << bits) if name[0] == "u" else (-(1 << (bits - 1)), 1 << (bits - 1))
    mask = (1 << bits) - 1

    def lower_integer(words: Words, at: int, value: Any, context: int) -> None:
        if type(value) is not int or not low <= value < high:
            raise LoweringError(name, value)
        words[at] = code
        words[at + 1] = value & mask

    return lower_integer


def _float(kind: Any) -> Lower:
    """Write a float. What is too large for an f32 becomes infinite, as in IEEE 754."""
    code, name = int(FLOATS[kind][0]), kind.__name__.lower()
    pointer = ffi.typeof("float *" if name == "f32" else "double *")

    def lower_float(words: Words, at: int, value: Any, context: int) -> None:
        if type(value) is not float and type(value) is not int:
            raise LoweringError(name, value)
        try:
            _cast(pointer, words + at + 1)[0] = value
        except OverflowError as problem:  # an int beyond 1.8e308
            raise LoweringError(name, value) from problem
        words[at] = code

    return lower_float


def _bool(_type: Any, _number: ResourceNumber) -> Lower:
    code = int(Kind.BOOL)

    def lower_bool(words: Words, at: int, value: Any, context: int) -> None:
        if type(value) is not bool:
            raise LoweringError("bool", value)
        words[at] = code
        words[at + 1] = value

    return lower_bool


def _char(_type: Any, _number: ResourceNumber) -> Lower:
    code = int(Kind.CHAR)

    def lower_char(words: Words, at: int, value: Any, context: int) -> None:
        if not isinstance(value, str) or len(value) != 1 or "\ud800" <= value <= "\udfff":
            raise LoweringError("char, one Unicode scalar value", value)
        words[at] = code
        words[at + 1] = ord(value)

    return lower_char


def _string(_type: Any, _number: ResourceNumber) -> Lower:
    code = int(Kind.STRING)

    def lower_string(words: Words, at: int, value: Any, context: int) -> None:
        data = _encode("string", value)
        _new_text(words + at + 1, len(data), data)
        words[at] = code

    return lower_string


def _enum(enum_type: Any, _number: ResourceNumber) -> Lower:
    code = int(Kind.ENUM)
    cases = {name: name.encode() for name in enum_type.names}
    expected = f"enum, one of {', '.join(cases)}"

    def lower_enum(words: Words, at: int, value: Any, context: int) -> None:
        data = cases.get(value) if isinstance(value, str) else None
        if data is None:
            raise LoweringError(expected, value)
        _new_text(words + at + 1, len(data), data)
        words[at] = code

    return lower_enum


def _number_list(kind: Kind, code: str) -> Lower:
    """Write a list of numbers as one strided copy."""
    first, step = STRIDES[code]
    cell = bytes([kind]) + bytes(31)
    expected = f"list<{kind.name.lower()}>"

    def check_numbers(value: Any) -> Any:
        if code == "B":
            if not isinstance(value, bytes | bytearray):
                raise LoweringError(f"{expected} as bytes", value)
            return value
        if not isinstance(value, list | tuple | array):
            raise LoweringError(expected, value)
        try:
            return memoryview(array(code, value))
        except (TypeError, OverflowError) as problem:
            raise LoweringError(f"{expected} ({problem})", value) from problem

    def lower_numbers(words: Words, at: int, value: Any, context: int) -> None:
        numbers = check_numbers(value)
        cells = bytearray(cell * len(numbers))
        if numbers:
            view: Any = memoryview(cells)
            (view if code == "B" else view.cast(code))[first::step] = numbers
        lib.wasmtime_component_vallist_new_uninit(words + at + 1, len(numbers))
        words[at] = Kind.LIST
        _memmove(_cast(CHARS, words[at + 2]), cells, len(cells))

    return lower_numbers


def _list(list_type: Any, number: ResourceNumber) -> Lower:
    lower = lowerer(list_type.element, number)
    code = int(Kind.LIST)

    def lower_list(words: Words, at: int, value: Any, context: int) -> None:
        if not isinstance(value, list | tuple):
            raise LoweringError("list", value)
        lib.wasmtime_component_vallist_new_uninit(words + at + 1, len(value))  # all false
        words[at] = code
        items = _cast(WORDS, words[at + 2])
        i = 0
        try:
            for item in value:
                lower(items, VALUE_WORDS * i, item, context)
                i += 1
        except LoweringError as problem:
            raise problem.inside(f"[{i}]") from None

    return lower_list


def _tuple(tuple_type: Any, number: ResourceNumber) -> Lower:
    lowers = [(VALUE_WORDS * i, lowerer(element, number)) for i, element in enumerate(tuple_type.elements)]
    code, size = int(Kind.TUPLE), len(lowers)

    def lower_tuple(words: Words, at: int, value: Any, context: int) -> None:
        if not isinstance(value, list | tuple) or len(value) != size:
            raise LoweringError(f"tuple of {size}", value)
        lib.wasmtime_component_valtuple_new_uninit(words + at + 1, size)
        words[at] = code
        items = _cast(WORDS, words[at + 2])
        i = 0
        try:
            for (i, lower), item in zip(lowers, value, strict=True):
                lower(items, i, item, context)
        except LoweringError as problem:
            raise problem.inside(f"[{i // VALUE_WORDS}]") from None

    return lower_tuple


def _record(record_type: Any, number: ResourceNumber) -> Lower:
    fields = [
        (ENTRY_WORDS * i, name, name.encode(), lowerer(ty, number)) for i, (name, ty) in enumerate(record_type.fields)
    ]
    code, names = int(Kind.RECORD), {name for _, name, _, _ in fields}
    expected = f"record with the fields {', '.join(name for _, name, _, _ in fields)}"

    def lower_record(words: Words, at: int, value: Any, context: int) -> None:
        if not isinstance(value, dict) or value.keys() != names:
            raise LoweringError(expected, value)
        lib.wasmtime_component_valrecord_new_uninit(words + at + 1, len(fields))  # all "": false
        words[at] = code
        entries = _cast(WORDS, words[at + 2])
        name = ""
        try:
            for i, name, encoded, lower in fields:
                lower(entries, i + NAME_WORDS, value[name], context)
                _new_text(entries + i, len(encoded), encoded)
        except LoweringError as problem:
            raise problem.inside(name) from None

    return lower_record


def _variant(variant_type: Any, number: ResourceNumber) -> Lower:
    cases = {
        name: (name.encode(), None if payload is None else lowerer(payload, number))
        for name, payload in variant_type.cases
    }
    code = int(Kind.VARIANT)
    expected = f"(case, payload) with a case of {', '.join(cases)}"

    def lower_variant(words: Words, at: int, value: Any, context: int) -> None:
        if not isinstance(value, tuple) or len(value) != 2 or value[0] not in cases:
            raise LoweringError(expected, value)
        name, payload = value
        encoded, lower = cases[name]
        if lower is None and payload is not None:
            raise LoweringError("no payload", payload).inside(name)
        words[at + 3] = 0
        _new_text(words + at + 1, len(encoded), encoded)
        words[at] = code
        if lower is not None:
            try:
                lower(_new_box(words, at + 3), 0, payload, context)
            except LoweringError as problem:
                raise problem.inside(name) from None

    return lower_variant


def _option(option_type: Any, number: ResourceNumber) -> Lower:
    reject_ambiguous_option(option_type)
    lower = lowerer(option_type.payload, number)
    code = int(Kind.OPTION)

    def lower_option(words: Words, at: int, value: Any, context: int) -> None:
        words[at + 1] = 0
        words[at] = code
        if value is not None:
            lower(_new_box(words, at + 1), 0, value, context)

    return lower_option


def _result(result_type: Any, number: ResourceNumber) -> Lower:
    lower_ok, lower_err = (None if ty is None else lowerer(ty, number) for ty in (result_type.ok, result_type.err))
    code = int(Kind.RESULT)

    def lower_result(words: Words, at: int, value: Any, context: int) -> None:
        is_ok = not isinstance(value, Err)
        lower, payload = (lower_ok, value) if is_ok else (lower_err, value.value)
        if lower is None and payload is not None:
            raise LoweringError("no payload", payload).inside("ok" if is_ok else "err")
        words[at + 1] = is_ok
        words[at + 2] = 0
        words[at] = code
        if lower is not None:
            try:
                lower(_new_box(words, at + 2), 0, payload, context)
            except LoweringError as problem:
                raise problem.inside("ok" if is_ok else "err") from None

    return lower_result


def _flags(flags_type: Any, _number: ResourceNumber) -> Lower:
    known = {name: name.encode() for name in flags_type.names}
    code = int(Kind.FLAGS)
    expected = f"set of flags among {', '.join(known)}"

    def lower_flags(words: Words, at: int, value: Any, context: int) -> None:
        if not isinstance(value, set | frozenset) or not value <= known.keys():
            raise LoweringError(expected, value)
        lib.wasmtime_component_valflags_new_uninit(words + at + 1, len(value))
        words[at] = code
        names = _cast(WORDS, words[at + 2])
        for i, name in enumerate(value):
            _new_text(names + NAME_WORDS * i, len(known[name]), known[name])

    return lower_flags


def _own(own_type: Any, resource_number: ResourceNumber) -> Lower:
    """Hand a resource to the guest: it becomes a handle that the guest owns."""
    number = resource_number(own_type.ty)
    code = int(Kind.RESOURCE)

    def lower_own(words: Words, at: int, value: Any, context: int) -> None:
        if type(value) is not int or not 0 <= value < 1 << 32:
            raise LoweringError("resource number (u32)", value)
        host = lib.wasmtime_component_resource_host_new(True, value, number)
        try:
            check(lib.wasmtime_component_resource_host_to_any(context, host, words + at + 1))
        finally:
            lib.wasmtime_component_resource_host_delete(host)
        words[at] = code

    return lower_own


_MAKERS: dict[Any, Callable[[Any, ResourceNumber], Lower]] = {
    wit_types.Bool: _bool,
    wit_types.Char: _char,
    wit_types.String: _string,
    wit_types.EnumType: _enum,
    wit_types.ListType: _list,
    wit_types.TupleType: _tuple,
    wit_types.RecordType: _record,
    wit_types.VariantType: _variant,
    wit_types.OptionType: _option,
    wit_types.ResultType: _result,
    wit_types.FlagsType: _flags,
    wit_types.OwnType: _own,
}
