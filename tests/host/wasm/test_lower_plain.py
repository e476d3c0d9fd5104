"""Plain values as they lie in memory."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from wasmtime.component import _types as wit_types

from tartlet.wasm import lower_plain as plain
from tartlet.wasm.library import ffi, lib
from tartlet.wasm.lower_plain import Lower, LoweringError
from tartlet.wasm.values import Kind


def lowered(lower: Lower, value: Any) -> tuple[int, bytes]:
    """The kind of a lowered value, and its first word."""
    words = ffi.new("uint64_t[4]")
    lower(words, 0, value, 0)
    return words[0], bytes(ffi.buffer(words))[8:16]


@pytest.mark.parametrize(
    ("lower", "value", "kind", "layout"),
    [
        (plain.boolean(), True, Kind.BOOL, struct.pack("<Q", 1)),
        (plain.integer(wit_types.U8), 255, Kind.U8, struct.pack("<Q", 255)),
        (plain.integer(wit_types.S8), -1, Kind.S8, struct.pack("<Q", 255)),
        (plain.integer(wit_types.S64), -2, Kind.S64, struct.pack("<q", -2)),
        (plain.floating(wit_types.F32), 1.5, Kind.F32, struct.pack("<fxxxx", 1.5)),
        (plain.floating(wit_types.F64), 7, Kind.F64, struct.pack("<d", 7.0)),
        (plain.char(), "\U0001f600", Kind.CHAR, struct.pack("<Q", 0x1F600)),
    ],
)
def test_layout(lower: Lower, value: Any, kind: Kind, layout: bytes) -> None:
    """Numbers, bools and chars lie in the low bytes of the second word."""
    assert lowered(lower, value) == (kind, layout)


def test_a_wrong_value_is_not_written() -> None:
    """A wrong value leaves the memory as it was."""
    words = ffi.new("uint64_t[4]")

    with pytest.raises(LoweringError):
        plain.integer(wit_types.U8)(words, 0, 256, 0)
    assert bytes(ffi.buffer(words)) == bytes(32)


def test_packed_list() -> None:
    """The numbers of a list each have 32 bytes: kind, number, nothing."""
    words = ffi.new("uint64_t[4]")
    plain.number_list(Kind.U32, "I")(words, 0, [7, 8], 0)

    assert (words[0], words[1]) == (Kind.LIST, 2)
    items = bytes(ffi.buffer(ffi.cast("char *", words[2]), 64))
    assert items == struct.pack("<QQQQ", Kind.U32, 7, 0, 0) + struct.pack("<QQQQ", Kind.U32, 8, 0, 0)
    lib.wasmtime_component_val_delete(words)


def test_path_of_an_error() -> None:
    """An error deep inside names the way to it."""
    error = LoweringError("u8", 256).inside("[3]").inside("field")

    assert str(error) == "field.[3]: expected u8, got int 256"
