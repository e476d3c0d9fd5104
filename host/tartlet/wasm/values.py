"""How component values lie in memory, shared by lift.py and lower.py.

A `wasmtime_component_val_t` is four 64-bit words: the kind (only the lowest byte counts), then a union of up to three
words. In a pointer to words, the value that starts at word `at` has its union at `at + 1`:

    numbers, bool, char     the number, in the low bytes of the word; the rest of the word is undefined
    string, enum            size, address of UTF-8 bytes
    list, tuple             size, address of values of 4 words
    record                  size, address of entries of 6 words: name (size, address), value (4 words)
    flags                   size, address of names (size, address)
    variant                 case name (size, address), address of the payload or 0
    option                  address of the value or 0
    result                  whether it is ok (lowest byte), address of the payload or 0
    own, borrow             address of a resource

Python's side: bool, int, float, str (also char and enum), bytes for list<u8>, list, tuple, dict for records by field
name, (case name, payload) for variants, frozenset of names for flags, None or the value for options, int for
resources (the number that the host chose). A result is lifted to (is_ok, value) and lowered from the ok value or an
`Err`.
"""

from __future__ import annotations

from array import array
from enum import IntEnum
from typing import Any, Final

from wasmtime.component import _types as wit_types

from tartlet.wasm.library import ffi

VALUE_WORDS = 4
ENTRY_WORDS = 6
NAME_WORDS = 2

CHARS: Final = ffi.typeof("char *")
WORDS: Final = ffi.typeof("uint64_t *")


class Kind(IntEnum):
    """The kinds of `wasmtime_component_valkind_t`."""

    BOOL = 0
    S8 = 1
    U8 = 2
    S16 = 3
    U16 = 4
    S32 = 5
    U32 = 6
    S64 = 7
    U64 = 8
    F32 = 9
    F64 = 10
    CHAR = 11
    STRING = 12
    LIST = 13
    RECORD = 14
    TUPLE = 15
    VARIANT = 16
    ENUM = 17
    OPTION = 18
    RESULT = 19
    FLAGS = 20
    RESOURCE = 21


INTEGERS: Final[dict[Any, tuple[Kind, str]]] = {
    wit_types.U8: (Kind.U8, "B"),
    wit_types.U16: (Kind.U16, "H"),
    wit_types.U32: (Kind.U32, "I"),
    wit_types.U64: (Kind.U64, "Q"),
    wit_types.S8: (Kind.S8, "b"),
    wit_types.S16: (Kind.S16, "h"),
    wit_types.S32: (Kind.S32, "i"),
    wit_types.S64: (Kind.S64, "q"),
}
FLOATS: Final[dict[Any, tuple[Kind, str]]] = {wit_types.F32: (Kind.F32, "f"), wit_types.F64: (Kind.F64, "d")}
NUMBERS: Final = INTEGERS | FLOATS
"""WIT number types, with their kind and the format character of `array` and `memoryview`."""

STRIDES: Final = {code: (8 // array(code).itemsize, 32 // array(code).itemsize) for _, code in NUMBERS.values()}
"""Where the numbers of a list lie, in items of their own size: the first, and the step from one to the next."""


def reject_ambiguous_option(option_type: Any) -> None:
    """Refuse an option of something that may itself be None in Python: an option, or a result whose ok value may be."""
    inner = option_type.payload
    while type(inner) is wit_types.ResultType:
        inner = inner.ok
    if inner is None or type(inner) is wit_types.OptionType:
        raise TypeError("an option of an option, or of a result<_, E>, has no Python form here: None could mean either")
