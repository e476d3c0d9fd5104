"""Makes the objects in the snapshot of a Python interpreter immortal, so that a run does not count references to them.

A run's memory is that of the snapshot, copied page by page at the first write to it. Most of these writes would only
count references, to objects that live as long as the run anyway. CPython (PEP 683) leaves alone the count of an object
whose count is very large; here every object that `tartlet_runner.memory` lists gets that count. A start then copies a
quarter fewer pages.
"""

from __future__ import annotations

import struct

from tartlet.errors import BuildError
from tartlet.wasm.data_segments import MemoryImage, read_memory_images

MARK = b"tartlet: list of all objects: "
"""In `tartlet_runner.memory.MARKED_LIST`, before the address of a list. The first object in it is None."""

_LEAST_IMMORTAL = 1 << 30  # on 32 bits, from CPython 3.12 on
_MOST_REFERENCES = 1 << 24  # that an ordinary object may have here
_MOST_OBJECTS = 1 << 24
_OBJECT = struct.Struct("<II")  # references, address of the type
_LIST = struct.Struct("<IIII")  # references, type, size, address of the items
_BYTES = struct.Struct("<IIII")  # references, type, size, hash; then the text
_WORD = struct.Struct("<I")


def make_immortal(component: bytes) -> bytes:
    """Return the component with every listed object immortal.

    Raises:
        BuildError: The snapshot is not what this was written for: its list is missing, or an address in it is not that
            of an object.
    """
    images = read_memory_images(component)
    if not images:
        raise _unknown("it has no memory")
    image = max(images, key=lambda image: image.num_bytes)
    addresses = _read_list(component, image)
    known = set(addresses)
    immortal = _read_references(image, addresses[0], known)
    if immortal < _LEAST_IMMORTAL:
        raise _unknown(f"None has {immortal:,} references")
    patched = bytearray(component)
    for address in addresses:
        references = _read_references(image, address, known)
        if references < _LEAST_IMMORTAL:
            position = image.position(address, _WORD.size)
            if position is None or not 0 < references < _MOST_REFERENCES:
                raise _unknown(f"the object at {address:#x} has {references:,} references")
            _WORD.pack_into(patched, position, immortal)
    return bytes(patched)


def _read_list(component: bytes, image: MemoryImage) -> tuple[int, ...]:
    """Read the addresses in the marked list. The mark is also in the code, with no address after it."""
    at = component.find(MARK)
    while at >= 0:
        _, _, size, _ = _BYTES.unpack_from(component, at - _BYTES.size)
        if size == len(MARK) + _WORD.size:
            (address,) = _WORD.unpack_from(component, at + len(MARK))
            _, _, count, items = _LIST.unpack(image.read(address, _LIST.size))
            if not 0 < count < _MOST_OBJECTS:
                raise _unknown(f"its list has {count:,} objects")
            return struct.unpack(f"<{count}I", image.read(items, count * _WORD.size))
        at = component.find(MARK, at + 1)
    raise _unknown("it has no list of its objects")


def _read_references(image: MemoryImage, address: int, known: set[int]) -> int:
    """Read an object's count of references. The object's type must be on the list, too."""
    references: int
    references, type_address = _OBJECT.unpack(image.read(address, _OBJECT.size))
    if type_address not in known:
        raise _unknown(f"at {address:#x} is no object")
    return references


def _unknown(what: str) -> BuildError:
    return BuildError(
        f"the snapshot of the Python interpreter is not of the expected form: {what}",
        hint="Use the version of componentize-py that this release of tartlet names.",
    )
