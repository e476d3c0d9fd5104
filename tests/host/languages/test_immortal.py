"""Objects of a snapshot become immortal, and what is no snapshot of CPython is refused."""

from __future__ import annotations

import struct

import pytest
from wasmtime import wat2wasm

from tartlet.errors import BuildError
from tartlet.languages.immortal import MARK, make_immortal
from tartlet.wasm.data_segments import read_memory_images

NONE, TYPE, LIST, IMMORTAL = 0x1000, 0x1010, 0x2000, 0x50000000
OBJECTS = {NONE: (IMMORTAL, TYPE), TYPE: (7, TYPE), LIST: (1, TYPE)}


def escaped(data: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in data)


def snapshot(objects: dict[int, tuple[int, int]], listed: list[int]) -> bytes:
    """A component whose memory has some objects, their list, and the mark alone, as in the code that makes the list."""
    text = MARK + struct.pack("<I", 0x5000)
    pieces = {address: struct.pack("<II", *words) for address, words in objects.items()}
    pieces[0x3000] = struct.pack("<IIII", 1, TYPE, len(MARK), 0) + MARK
    pieces[0x4000] = struct.pack("<IIII", 1, TYPE, len(text), 0) + text
    pieces[0x5000] = struct.pack("<IIII", 1, TYPE, len(listed), 0x6000)
    pieces[0x6000] = struct.pack(f"<{len(listed)}I", *listed)
    data = " ".join(f'(data (i32.const {address}) "{escaped(piece)}")' for address, piece in pieces.items())
    return bytes(wat2wasm(f"(component (core module (memory 1) {data}))"))


def test_listed_objects_become_immortal() -> None:
    """They get None's count of references; what is immortal already and what is not listed stays as it is."""
    objects = {**OBJECTS, 0x2010: (3, TYPE)}
    (image,) = read_memory_images(make_immortal(snapshot(objects, list(OBJECTS))))

    assert {at: struct.unpack("<II", image.read(at, 8)) for at in objects} == {
        NONE: (IMMORTAL, TYPE),
        TYPE: (IMMORTAL, TYPE),
        LIST: (IMMORTAL, TYPE),
        0x2010: (3, TYPE),
    }


@pytest.mark.parametrize(
    ("objects", "listed", "problem"),
    [
        (OBJECTS, [], "0 objects"),
        ({**OBJECTS, NONE: (1000, TYPE)}, list(OBJECTS), "None has 1,000 references"),
        ({**OBJECTS, LIST: (0, TYPE)}, list(OBJECTS), "at 0x2000 has 0 references"),
        ({**OBJECTS, LIST: (1 << 25, TYPE)}, list(OBJECTS), "33,554,432 references"),
        ({**OBJECTS, LIST: (1, 0x1234)}, list(OBJECTS), "at 0x2000 is no object"),
        (OBJECTS, [*OBJECTS, 0x8000], "at 0x8000 is no object"),
    ],
)
def test_what_is_not_as_expected_is_refused(
    objects: dict[int, tuple[int, int]], listed: list[int], problem: str
) -> None:
    """Nothing is written over what may be no count of references."""
    with pytest.raises(BuildError, match=problem):
        make_immortal(snapshot(objects, listed))


def test_a_snapshot_without_a_list_is_refused() -> None:
    """As one that another tool has made."""
    with pytest.raises(BuildError, match="no list"):
        make_immortal(snapshot(OBJECTS, list(OBJECTS)).replace(MARK, MARK.upper()))


def test_a_component_without_memory_is_refused() -> None:
    """By name, like everything that is no snapshot."""
    with pytest.raises(BuildError, match="no memory"):
        make_immortal(bytes(wat2wasm("(component)")))
