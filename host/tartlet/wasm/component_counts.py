"""Counts what is in a component before anything is compiled, and refuses what has too much of it.

Compiling is where a small upload can cost gigabytes. Counting takes one walk over the binary: each part is gone over
once, nested components wait on a list, not on Python's stack, and no list of items is gone through before its length
has been compared with the limit. Nothing is copied. What is counted need not be valid; Wasmtime decides that.

Cost: 12 ms for a Python component (34 MB, 13,500 functions); at most 50 ms within the limits of uploads.
"""

from __future__ import annotations

from dataclasses import fields

from tartlet.component_limits import ComponentCounts, ComponentLimits, refusal
from tartlet.errors import InvalidComponentError
from tartlet.wasm.binary_reader import BinaryReader, MalformedError, TruncatedError, sections
from tartlet.wasm.component_reader import (
    PREAMBLE_BYTES,
    component_start,
    malformed_error,
    read_import,
    truncated_error,
)
from tartlet.wasm.instance_tree import InstanceNode, InstanceTree

_COMPONENT, _CORE_MODULE = b"\0asm\x0d\0\x01\0", b"\0asm\x01\0\0\0"
_CUSTOM = 0
_PAGE_BYTES = 65_536

# Sections of a component that are not lists of definitions.
_NESTED_MODULE, _NESTED_COMPONENT, _START = 1, 4, 9
_CORE_INSTANCE, _INSTANCE, _ALIAS, _IMPORT = 2, 5, 6, 10
_OF_COMPONENT = {
    _CORE_INSTANCE: "instances",
    3: "types",
    _INSTANCE: "instances",
    _ALIAS: "aliases",
    7: "types",
    8: "lowerings",
    _IMPORT: "imports",
    11: "exports",
}
"""What the items of other sections count as."""

_COMPONENT_SORT, _CORE_SORT, _OUTER = 4, 0, 2

_FUNCTION, _TABLE, _MEMORY, _CORE_START, _CODE, _DATA, _DATA_COUNT = 3, 4, 5, 8, 10, 11, 12
_OF_MODULE = {
    1: "types",
    2: "imports",
    _FUNCTION: "functions",
    _TABLE: "tables",
    _MEMORY: "memories",
    6: "globals",
    7: "exports",
    9: "element_segments",
    _DATA: "data_segments",
}

_REFERENCE_TYPES = (0x70, 0x6F)
_HAS_MAXIMUM = 1


def count_component(data: bytes, limits: ComponentLimits) -> tuple[ComponentCounts, list[range]]:
    """Count what is in a component, and find where its core modules are in the bytes.

    Raises:
        InvalidComponentError: It exceeds a limit, by one of the codes of `COUNTED`; or `not_a_component`, `truncated`,
            `composed`.
    """
    start = component_start(data)
    tally = _Tally(limits)
    tally.add("size_bytes", len(data))
    walk = _Walk(tally)
    try:
        walk.component(BinaryReader(data, start), None)
        while walk.waiting:
            walk.component(*walk.waiting.pop())
        return walk.end(), walk.modules
    except TruncatedError as problem:
        raise truncated_error(data, problem) from problem
    except MalformedError as problem:
        raise malformed_error(problem) from problem


class _Tally:
    """Sums that are compared with their limits as they grow."""

    def __init__(self, limits: ComponentLimits) -> None:
        self._limits = {field.name: limits.of(field.name) for field in fields(ComponentCounts)}
        self._counts = dict.fromkeys(self._limits, 0)

    def add(self, name: str, number: int) -> None:
        """Count more of something. Raises `InvalidComponentError` if that is too much."""
        self._counts[name] += number
        if self._counts[name] > self._limits[name]:
            raise refusal(name, self._counts[name], self._limits[name])

    def reach(self, name: str, number: int) -> None:
        """Note a size or depth, of which the largest counts."""
        self.add(name, max(0, number - self._counts[name]))

    def counts(self) -> ComponentCounts:
        """All of it."""
        return ComponentCounts(**self._counts)


class _Walk:
    """One walk over a component. What is nested in it waits on a list until its outer component has been read."""

    def __init__(self, tally: _Tally) -> None:
        self.waiting: list[tuple[BinaryReader, int | None]] = []  # components, each with the number of its outer one
        self.modules: list[range] = []
        self._tally = tally
        self._tree = InstanceTree()
        # An inner component has core instances. Calls between components with a memory each take modules with two
        # memories, which our engine has switched off; Wasmtime 50 ends the process when it is to compile one.
        self._is_composed = False

    def component(self, reader: BinaryReader, outer: int | None) -> None:
        """Read the sections of a component, without its preamble."""
        node = self._tree.add(outer)
        self._tally.reach("nesting", node.depth)
        for section, contents in sections(reader):
            self._tally.add("sections", 1)
            if section == _CUSTOM:
                self._tally.add("custom_sections", 1)
            elif section == _NESTED_MODULE:
                self._module(contents)
            elif section == _NESTED_COMPONENT:
                _check_preamble(contents, _COMPONENT)
                self.waiting.append((contents, node.number))
            elif section in _OF_COMPONENT:
                self._definitions(section, contents, node)
            elif section == _START:
                self._tally.add("definition_bytes", contents.num_bytes_left)
            else:
                raise MalformedError(f"a section of the unknown kind {section}")

    def end(self) -> ComponentCounts:
        """Count instances, which takes the whole tree, and return all counts."""
        self._tally.reach("instances", self._tree.most_instances())
        if self._is_composed:
            raise InvalidComponentError(
                "it is put together of components that have code of their own, and calls between these are not offered",
                hint="Link the programs into one component, with one memory.",
                code="composed",
            )
        return self._tally.counts()

    def _definitions(self, section: int, contents: BinaryReader, node: InstanceNode) -> None:
        self._tally.add("definition_bytes", contents.num_bytes_left)
        number = _read_length(contents)
        self._tally.add(_OF_COMPONENT[section], number)
        if section == _CORE_INSTANCE:
            node.num_core_instances += number
            self._is_composed |= number > 0 and node.depth > 0
        elif section == _INSTANCE:
            node.num_instances += number
        elif section == _IMPORT:
            kinds = [read_import(contents).kind for _ in range(number)]
            node.is_given_components |= "component" in kinds
        elif section == _ALIAS:
            sorts = [_read_alias(contents) for _ in range(number)]
            node.is_given_components |= _COMPONENT_SORT in sorts

    def _module(self, reader: BinaryReader) -> None:
        start = reader.position
        self._tally.add("core_modules", 1)
        _check_preamble(reader, _CORE_MODULE)
        num_functions = 0
        for section, contents in sections(reader):
            self._tally.add("sections", 1)
            if section == _CUSTOM:
                self._tally.add("custom_sections", 1)
                continue
            if section not in (_CODE, _DATA):
                self._tally.add("definition_bytes", contents.num_bytes_left)
            if section == _CODE:
                self._code(contents, num_functions)
            elif section in _OF_MODULE:
                number = _read_length(contents)
                self._tally.add(_OF_MODULE[section], number)
                if section == _FUNCTION:
                    num_functions += number
                elif section == _TABLE:
                    self._tables(contents, number)
                elif section == _MEMORY:
                    self._memories(contents, number)
            elif section not in (_CORE_START, _DATA_COUNT):
                raise MalformedError(f"a section of the unknown kind {section} in a core module")
        self.modules.append(range(start, reader.position))

    def _code(self, reader: BinaryReader, num_declared: int) -> None:
        num_bodies = _read_length(reader)
        if num_bodies != num_declared:
            raise MalformedError(f"a core module declares {num_declared:,} functions, and has code of {num_bodies:,}")
        sizes = reader.skip_sized_items(num_bodies)
        self._tally.reach("function_bytes", max(sizes, default=0))
        self._tally.add("code_bytes", sum(sizes))

    def _tables(self, reader: BinaryReader, number: int) -> None:
        for _ in range(number):
            if reader.byte() not in _REFERENCE_TYPES:
                raise MalformedError("a table of a type that this host does not offer")
            self._tally.add("table_elements", _read_minimum(reader, "table"))

    def _memories(self, reader: BinaryReader, number: int) -> None:
        for _ in range(number):
            self._tally.add("initial_memory_bytes", _read_minimum(reader, "memory") * _PAGE_BYTES)


def _check_preamble(reader: BinaryReader, expected: bytes) -> None:
    if bytes(reader.byte() for _ in range(PREAMBLE_BYTES)) != expected:
        raise MalformedError("a nested module or component that does not begin as one")


def _read_length(reader: BinaryReader) -> int:
    """Read how many items a section has. Each takes a byte at least."""
    number = reader.u32()
    if number > reader.num_bytes_left:
        raise MalformedError(f"a section of {number:,} items in {reader.num_bytes_left:,} bytes")
    return number


def _read_alias(reader: BinaryReader) -> int:
    """Read what another instance or an outer component gives a name to, and return its sort."""
    sort = reader.byte()
    if sort == _CORE_SORT:
        reader.byte()  # which sort of core item
    target = reader.byte()
    reader.u32()  # of the instance, or how far out
    if target == _OUTER:
        reader.u32()
    else:
        reader.skip(reader.u32())  # its name
    return sort


def _read_minimum(reader: BinaryReader, kind: str) -> int:
    """Read the limits of a memory, in pages, or of a table, in elements, and return the lower one."""
    flags = reader.byte()
    if flags not in (0, _HAS_MAXIMUM):
        raise MalformedError(f"a {kind} of a kind that this host does not offer (flags {flags})")
    minimum = reader.u32()
    if flags == _HAS_MAXIMUM:
        reader.u32()
    return minimum
