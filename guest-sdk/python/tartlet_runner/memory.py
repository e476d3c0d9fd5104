"""Arranges the memory of the snapshot so that a run writes to few pages: each is copied at the first write to it."""

from __future__ import annotations

import gc
from types import CodeType, FrameType

LARGEST_HOLE = 256 * 1024  # bytes
SMALLEST_HOLE = 32
BYTES_OVERHEAD = 21  # of a bytes object: 17 of its own and 4 of the allocator

MARK = b"tartlet: list of all objects: "
MARKED_LIST = b""
"""The mark, then the address of the list of all objects."""

_objects: list[object] = []
_fillings: list[bytes | None] = [None] * 100_000


def settle() -> None:
    """Collect garbage, fill the holes that it leaves, and hide what there is from the garbage collector.

    The first collection of a run would otherwise write to every page: 19 MB instead of 3.
    """
    gc.collect()
    list_objects()
    fill_holes()
    gc.freeze()


def list_objects() -> None:
    """List all objects: the build makes them immortal (languages/immortal.py in the host), and finds it by its mark.

    The list keeps them, so that no other object can come to lie at one of their addresses.
    """
    global MARKED_LIST
    find_objects(_objects)
    MARKED_LIST = MARK + id(_objects).to_bytes(4, "little")


def find_objects(found: list[object]) -> None:
    """Append all objects that are reachable to `found`, None first."""
    seen = bytearray()  # a bit for each address, as all are multiples of 4; a set would be several times as large
    queue: list[object] = [*gc.get_objects(), None]
    while queue:
        each = queue.pop()
        at, bit = id(each) // 32, 1 << id(each) // 4 % 8
        if at >= len(seen):
            seen.extend(bytes(at + 1 - len(seen)))
        if not seen[at] & bit and each is not queue and not isinstance(each, FrameType):
            seen[at] |= bit
            found.append(each)
            queue += (type(each), *gc.get_referents(each), *code_parts(each))


def code_parts(each: object) -> tuple[object, ...]:
    """What a code object refers to: the garbage collector does not know."""
    if not isinstance(each, CodeType):
        return ()
    tables = each.co_linetable, each.co_exceptiontable
    names = each.co_name, each.co_qualname, each.co_filename
    return each.co_consts, each.co_names, each.co_varnames, each.co_freevars, each.co_cellvars, *tables, *names


def fill_holes() -> int:
    """Allocate all free memory that lies between objects, for good; the number of bytes.

    What a run allocates then lies side by side at the end of the memory, instead of all over it: a third of the pages
    to compile a program. The holes are filled from the largest size to the smallest, each until the allocator has to
    give fresh memory, which lies above all objects.
    """
    top = id(bytes(1 << 20))
    count = filled = 0
    sizes = [1 << power for power in range(LARGEST_HOLE.bit_length() - 1, 9, -1)]
    for size in [*sizes, *range(512, SMALLEST_HOLE - 1, -16)]:
        while id(block := bytes(size - BYTES_OVERHEAD)) < top and count < len(_fillings):
            _fillings[count] = block
            count += 1
            filled += size
    return filled
