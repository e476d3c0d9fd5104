"""Values made of others as they lie in memory."""

from __future__ import annotations

from typing import Any

import pytest
from wasmtime.component import _types as wit_types

from tartlet.wasm import lower_compound as compound
from tartlet.wasm import lower_plain as plain
from tartlet.wasm.host_function import Constant, Err
from tartlet.wasm.library import ffi, lib
from tartlet.wasm.lower_plain import Lower, LoweringError
from tartlet.wasm.values import WORDS, Kind

U8 = plain.integer(wit_types.U8)


def lowered(lower: Lower, value: Any) -> Any:
    """A lowered value, which is freed with the test."""
    words = ffi.gc(ffi.new("uint64_t[4]"), lib.wasmtime_component_val_delete)
    lower(words, 0, value, 0)
    return words


def test_record_entries() -> None:
    """A record is its size and entries of name and value, in the order of the type."""
    words = lowered(compound.record({"a": U8, "bc": U8}), {"bc": 2, "a": 1})

    assert (words[0] & 0xFF, words[1]) == (Kind.RECORD, 2)  # the rest of the word is padding
    entries = ffi.cast(WORDS, words[2])
    assert [entries[i] for i in (0, 2, 3, 6, 8, 9)] == [1, Kind.U8, 1, 2, Kind.U8, 2]
    assert ffi.unpack(ffi.cast("char *", entries[7]), 2) == b"bc"


def test_constant_records() -> None:
    """A constant is lowered once for each type and then copied: every copy is a value of its own."""
    constant = Constant({"a": 7, "text": "xyz"})
    lower = compound.record({"a": U8, "text": plain.string()})
    other = compound.record({"text": plain.string(), "a": U8})
    copies = [lowered(each, constant) for each in (lower, lower, other, other)]
    entries = [ffi.cast(WORDS, words[2]) for words in copies]

    assert [(words[0] & 0xFF, words[1]) for words in copies] == [(Kind.RECORD, 2)] * 4
    assert [entry[3] for entry in entries[:2]] == [7, 7]
    assert [entry[9] for entry in entries[2:]] == [7, 7]
    texts = [entries[0][10], entries[1][10], entries[2][4], entries[3][4]]
    assert [ffi.unpack(ffi.cast("char *", text), 3) for text in texts] == [b"xyz"] * 4
    assert len(set(texts)) == 4
    assert len(constant.forms) == 2


def test_a_constant_that_does_not_fit() -> None:
    """It is refused every time, and nothing half-made is kept."""
    constant = Constant({"a": 1, "b": "no number"})
    for _ in range(2):
        with pytest.raises(LoweringError, match="b: expected u8"):
            lowered(compound.record({"a": U8, "b": U8}), constant)
    assert not constant.forms


def test_empty_sides() -> None:
    """An option of nothing, and a result or a variant without payload, hold no address."""
    assert [lowered(compound.option(U8), None)[i] for i in (0, 1)] == [Kind.OPTION, 0]
    assert [lowered(compound.result(None, None), None)[i] for i in (0, 1, 2)] == [Kind.RESULT, 1, 0]
    assert [lowered(compound.result(None, None), Err())[i] for i in (0, 1, 2)] == [Kind.RESULT, 0, 0]
    assert [lowered(compound.variant({"x": None}), ("x", None))[i] for i in (0, 1, 3)] == [Kind.VARIANT, 1, 0]


def test_lists_and_tuples_take_either() -> None:
    """A list can be given as a tuple and the other way round."""
    assert lowered(compound.list_of(U8), (1, 2))[1] == 2
    assert lowered(compound.tuple_of([U8, U8]), [1, 2])[1] == 2
