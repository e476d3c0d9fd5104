"""Lower closures of values without parts of any other type: numbers, texts, flags, resources."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any

from tartlet.wasm.library import Words, check, ffi, lib
from tartlet.wasm.values import CHARS, FLOATS, INTEGERS, NAME_WORDS, STRIDES, WORDS, Kind

Lower = Callable[[Words, int, Any, int], None]
"""`lower(words, at, value, context)`: write `value` at word `at`. The store's context is needed for handles only."""

_cast, _memmove = ffi.cast, ffi.memmove
new_text = lib.wasm_byte_vec_new  # copies into Wasmtime's allocator


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


def integer(kind: Any) -> Lower:
    """An integer: from an int in its range, and not from a bool."""
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


def floating(kind: Any) -> Lower:
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


def boolean() -> Lower:
    """A bool: from a bool."""
    code = int(Kind.BOOL)

    def lower_bool(words: Words, at: int, value: Any, context: int) -> None:
        if type(value) is not bool:
            raise LoweringError("bool", value)
        words[at] = code
        words[at + 1] = value

    return lower_bool


def char() -> Lower:
    """A char: from a str of one Unicode scalar value."""
    code = int(Kind.CHAR)

    def lower_char(words: Words, at: int, value: Any, context: int) -> None:
        if not isinstance(value, str) or len(value) != 1 or "\ud800" <= value <= "\udfff":
            raise LoweringError("char, one Unicode scalar value", value)
        words[at] = code
        words[at + 1] = ord(value)

    return lower_char


def string() -> Lower:
    """A string: from a str without lone surrogates."""
    code = int(Kind.STRING)

    def lower_string(words: Words, at: int, value: Any, context: int) -> None:
        data = _encode("string", value)
        new_text(words + at + 1, len(data), data)
        words[at] = code

    return lower_string


def enum(names: Iterable[str]) -> Lower:
    """An enum: from the name of a case."""
    code = int(Kind.ENUM)
    cases = {name: name.encode() for name in names}
    expected = f"enum, one of {', '.join(cases)}"

    def lower_enum(words: Words, at: int, value: Any, context: int) -> None:
        data = cases.get(value) if isinstance(value, str) else None
        if data is None:
            raise LoweringError(expected, value)
        new_text(words + at + 1, len(data), data)
        words[at] = code

    return lower_enum


def flags(names: Iterable[str]) -> Lower:
    """Flags: from a set of names."""
    known = {name: name.encode() for name in names}
    code = int(Kind.FLAGS)
    expected = f"set of flags among {', '.join(known)}"

    def lower_flags(words: Words, at: int, value: Any, context: int) -> None:
        if not isinstance(value, set | frozenset) or not value <= known.keys():
            raise LoweringError(expected, value)
        lib.wasmtime_component_valflags_new_uninit(words + at + 1, len(value))
        words[at] = code
        entries = _cast(WORDS, words[at + 2])
        for i, name in enumerate(value):
            new_text(entries + NAME_WORDS * i, len(known[name]), known[name])

    return lower_flags


def number_list(kind: Kind, code: str) -> Lower:
    """Write a list of numbers as one strided copy."""
    first, step = STRIDES[code]
    cell, list_code = bytes([kind]) + bytes(31), int(Kind.LIST)
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
        lib.wasmtime_component_vallist_new_uninit(words + at + 1, len(numbers))
        words[at] = list_code
        if not numbers:
            return
        cells = bytearray(cell * len(numbers))
        view: Any = memoryview(cells)
        (view if code == "B" else view.cast(code))[first::step] = numbers
        _memmove(_cast(CHARS, words[at + 2]), cells, len(cells))

    return lower_numbers


def own(number: int) -> Lower:
    """Hand a resource to the guest, as a handle that it owns. `number` is that of the resource type."""
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


def _encode(expected: str, value: object) -> bytes:
    """Encode a text. A lone surrogate is an error here; in Wasmtime it would end the process."""
    if not isinstance(value, str):
        raise LoweringError(expected, value)
    try:
        return value.encode()
    except UnicodeEncodeError as problem:
        raise LoweringError(f"{expected} of Unicode scalar values", value) from problem
