"""The cursor over the binary format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet.wasm.binary_reader import BinaryReader, MalformedError, TruncatedError


def leb128(value: int) -> bytes:
    """Encode an unsigned number."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


@given(st.integers(0, 2**32 - 1))
def test_numbers(value: int) -> None:
    """Every 32-bit number is read as it was written, and nothing after it."""
    reader = BinaryReader(leb128(value) + b"\xff", 0)

    assert reader.u32() == value
    assert reader.byte() == 0xFF
    assert reader.is_at_end


@given(st.lists(st.integers(0, 20_000), max_size=30))
def test_sized_items(sizes: list[int]) -> None:
    """Items are gone over by their sizes."""
    reader = BinaryReader(b"".join(leb128(size) + bytes(size) for size in sizes) + b"!", 0)

    assert reader.skip_sized_items(len(sizes)) == sizes
    assert reader.byte() == ord("!")


@given(st.lists(st.integers(0, 300), min_size=1, max_size=10), st.data())
def test_cut_off_items(sizes: list[int], data: st.DataObject) -> None:
    """Items that are cut off anywhere are an error."""
    whole = b"".join(leb128(size) + bytes(size) for size in sizes)
    cut = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(TruncatedError):
        BinaryReader(whole[:cut], 0).skip_sized_items(len(sizes))


def test_parts_do_not_reach_beyond_themselves() -> None:
    """A reader of a part ends with the part, though the bytes go on."""
    reader = BinaryReader(b"abcdef", 0)
    part = reader.part(2)

    assert (part.byte(), part.byte()) == (ord("a"), ord("b"))
    with pytest.raises(TruncatedError):
        part.byte()
    assert reader.byte() == ord("c")


def test_malformed() -> None:
    """Numbers that are too long and names that are not UTF-8 are errors."""
    with pytest.raises(MalformedError):
        BinaryReader(b"\xff" * 6, 0).u32()
    with pytest.raises(MalformedError):
        BinaryReader(b"\xff" * 6, 0).skip_s33()
    with pytest.raises(MalformedError):
        BinaryReader(b"\x01\xff", 0).name()
    with pytest.raises(MalformedError):
        BinaryReader(b"\xff" * 6, 0).skip_sized_items(1)
