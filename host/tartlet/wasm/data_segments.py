"""Finds where in a component's bytes the initial contents of its linear memories are."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass

from tartlet.wasm.binary_reader import BinaryReader, MalformedError, sections

_PREAMBLE_BYTES = 8
_NESTED_MODULE, _NESTED_COMPONENT = 1, 4  # sections of a component
_DATA = 11  # of a core module
_PASSIVE, _ACTIVE_WITH_MEMORY = 1, 2
_I32_CONST, _END = 0x41, 0x0B


@dataclass(frozen=True, slots=True, order=True)
class DataSegment:
    """A piece of a memory's initial contents."""

    address: int  # in the linear memory
    size: int
    position: int  # in the component's bytes


class MemoryImage:
    """The initial contents of one core module's memory, by address. What no segment gives is zero."""

    def __init__(self, component: bytes, segments: list[DataSegment]) -> None:
        self._component = component
        self._segments = sorted(segments)
        self._starts = [segment.address for segment in self._segments]

    @property
    def num_bytes(self) -> int:
        """Bytes that segments give."""
        return sum(segment.size for segment in self._segments)

    def read(self, address: int, size: int) -> bytes:
        """The `size` bytes at `address`."""
        contents = bytearray(size)
        index = max(0, bisect.bisect_right(self._starts, address) - 1)
        for segment in self._segments[index:]:
            if segment.address >= address + size:
                break
            first, last = max(address, segment.address), min(address + size, segment.address + segment.size)
            if first < last:
                at = segment.position + first - segment.address
                contents[first - address : last - address] = self._component[at : at + last - first]
        return bytes(contents)

    def position(self, address: int, size: int) -> int | None:
        """Where in the component the `size` bytes at `address` are; None if they are not all in one segment."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        segment = self._segments[index]
        offset = address - segment.address
        return segment.position + offset if offset + size <= segment.size else None


def read_memory_images(component: bytes) -> list[MemoryImage]:
    """Read the memory image of each core module that has one. Takes a component that has been checked."""
    return [
        MemoryImage(component, segments) for segments in _walk(BinaryReader(component, _PREAMBLE_BYTES)) if segments
    ]


def _walk(reader: BinaryReader) -> Iterator[list[DataSegment]]:
    for section, contents in sections(reader):
        if section == _NESTED_COMPONENT:
            contents.skip(_PREAMBLE_BYTES)
            yield from _walk(contents)
        elif section == _NESTED_MODULE:
            contents.skip(_PREAMBLE_BYTES)
            for core_section, core_contents in sections(contents):
                if core_section == _DATA:
                    yield _read_segments(core_contents)


def _read_segments(reader: BinaryReader) -> list[DataSegment]:
    """Read the active segments whose address is a constant: others are not the snapshot of a memory."""
    segments = []
    for _ in range(reader.u32()):
        form = reader.u32()
        if form == _ACTIVE_WITH_MEMORY:
            reader.u32()
        address = None if form == _PASSIVE else _read_address(reader)
        size = reader.u32()
        if address is not None:
            segments.append(DataSegment(address, size, reader.position))
        reader.skip(size)
    return segments


def _read_address(reader: BinaryReader) -> int | None:
    """Read the expression that gives a segment's address; None if it depends on a global."""
    is_constant = reader.byte() == _I32_CONST
    address = reader.s32_bits() if is_constant else reader.u32()
    if reader.byte() != _END:
        raise MalformedError("a segment's address is more than a constant or a global")
    return address if is_constant else None
