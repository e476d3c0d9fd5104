"""Takes the component that componentize-qjs makes out of the wrapper that it is in.

The wrapper is a component of its own, whose only use is to satisfy an import that the JavaScript engine has left from
the time when it was built: how modules are loaded. Calls between two components need adapters with several memories,
which the host's engine has switched off, and each such component costs an instance. What remains here is the inner
component, where the two functions of that import end the program with a trap. Nothing calls them: all modules are
bundled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tartlet.errors import BuildError
from tartlet.wasm.binary_reader import BinaryReader, MalformedError, TruncatedError, sections
from tartlet.wasm.component_reader import PREAMBLE_BYTES, component_start, read_import

LEFT_OVER = "local:init/module-loader"
"""The import that is taken out."""

_CORE_INSTANCE, _COMPONENT, _INSTANCE, _ALIAS, _CANON, _IMPORT = 2, 4, 5, 6, 8, 10  # sections
_CORE_FUNC, _FUNC, _INSTANCE_SORT = 0, 1, 5  # sorts
_EXPORT_ALIAS, _CORE_EXPORT_ALIAS, _OUTER_ALIAS = 0, 1, 2  # forms of an alias
_LIFT, _LOWER = 0, 1  # forms of a canonical definition
_SHIM = 0
"""The core instance whose functions call through a table, which is filled last. Once that is done, calling one of the
two that are left without anything to call means that it calls itself, until the stack ends: a trap."""


@dataclass(slots=True)
class _Item:
    """One definition in a section."""

    section: int
    data: bytes


@dataclass(slots=True)
class _Found:
    """What the sections before say of the numbers of things."""

    instances: int = 0
    functions: int = 0
    core_functions: int = 0
    left_over: int | None = None  # the instance that is taken out
    other_function: bytes = b""  # an alias of a function of another instance
    dead_functions: set[int] = field(default_factory=set)
    shim_names: dict[int, bytes] = field(default_factory=dict)  # names of the shim's functions, by core function


def unwrap(component: bytes) -> bytes:
    """Return the inner component without what is left over.

    Raises:
        BuildError: It is not of the form that this was written for.
    """
    try:
        inner = _largest_component(component)
        return component[:PREAMBLE_BYTES] + _without_left_over(inner)
    except (MalformedError, TruncatedError) as problem:
        raise _unknown(str(problem)) from problem


def _largest_component(component: bytes) -> bytes:
    """The bytes of the largest of the components inside."""
    parts = [
        component[reader.position : reader.position + reader.num_bytes_left]
        for section, reader in sections(BinaryReader(component, component_start(component)))
        if section == _COMPONENT
    ]
    if not parts:
        raise _unknown("it has no component inside")
    return max(parts, key=len)


def _without_left_over(component: bytes) -> bytes:
    """The sections of a component, in which the left-over import is an empty instance, and its functions the shim's."""
    names = _shim_names(component)
    found = _Found(shim_names=names)
    written = bytearray()
    for section, reader in sections(BinaryReader(component, PREAMBLE_BYTES)):
        start, end = reader.position, reader.position + reader.num_bytes_left
        change = _CHANGES.get(section)
        if change is None:
            written += _section(section, component[start:end])
            if section == _INSTANCE:
                found.instances += reader.u32()
            continue
        for item in (change(component, reader, found) for _ in range(reader.u32())):
            written += _section(item.section, b"\x01" + item.data)
    if found.left_over is None or len(found.dead_functions) != 2:
        raise _unknown(f"its inner component does not import {LEFT_OVER}")
    return bytes(written)


def _import(component: bytes, reader: BinaryReader, found: _Found) -> _Item:
    start = reader.position
    extern = read_import(reader)
    if extern.kind == "function":
        found.functions += 1
    if extern.kind == "interface":
        found.instances += 1
        if extern.name == LEFT_OVER:
            found.left_over = found.instances - 1
            return _Item(_INSTANCE, b"\x01\x00")  # of no exports
    return _Item(_IMPORT, component[start : reader.position])


def _alias(component: bytes, reader: BinaryReader, found: _Found) -> _Item:
    start = reader.position
    sort, is_core_func, form, of = _read_alias(reader)
    data = component[start : reader.position]
    if is_core_func:
        found.core_functions += 1
    if sort == _INSTANCE_SORT:
        found.instances += 1
    if sort == _FUNC:
        if form == _EXPORT_ALIAS and of == found.left_over:
            found.dead_functions.add(found.functions)
            data = found.other_function
        else:
            found.other_function = data
        found.functions += 1
    return _Item(_ALIAS, data)


def _canon(component: bytes, reader: BinaryReader, found: _Found) -> _Item:
    start = reader.position
    form = reader.byte()
    if form == _LIFT:
        reader.byte()
        reader.u32()
        _skip_options(reader)
        reader.u32()
        found.functions += 1
        return _Item(_CANON, component[start : reader.position])
    found.core_functions += 1
    if form != _LOWER:
        reader.u32()  # of a resource: its type
        return _Item(_CANON, component[start : reader.position])
    reader.byte()
    function = reader.u32()
    _skip_options(reader)
    if function not in found.dead_functions:
        return _Item(_CANON, component[start : reader.position])
    name = found.shim_names.get(found.core_functions - 1)
    if name is None:
        raise _unknown(f"a function of {LEFT_OVER} is not called through a table")
    return _Item(_ALIAS, bytes((_CORE_FUNC, 0, _CORE_EXPORT_ALIAS, _SHIM)) + name)


_CHANGES: dict[int, Callable[[bytes, BinaryReader, _Found], _Item]] = {
    _IMPORT: _import,
    _ALIAS: _alias,
    _CANON: _canon,
}


def _shim_names(component: bytes) -> dict[int, bytes]:
    """The name, with its length, under which a core function is put into the shim's table; by the function's number."""
    names: dict[int, bytes] = {}
    for section, reader in sections(BinaryReader(component, PREAMBLE_BYTES)):
        if section != _CORE_INSTANCE:
            continue
        for _ in range(reader.u32()):
            if reader.byte() == 0:  # an instance of a module
                reader.u32()
                for _ in range(reader.u32()):
                    reader.name()
                    reader.byte()
                    reader.u32()
                continue
            for _ in range(reader.u32()):
                start = reader.position
                name = reader.name()
                data = component[start : reader.position]
                sort = reader.byte()
                function = reader.u32()
                if sort == 0 and name.isdecimal():
                    names[function] = data
    return names


def _read_alias(reader: BinaryReader) -> tuple[int, bool, int, int]:
    """Read an alias: its sort, whether it is a core function, its form, and of which instance it is."""
    sort = reader.byte()
    core_sort = reader.byte() if sort == 0 else None
    form = reader.byte()
    of = reader.u32()
    if form == _OUTER_ALIAS:
        reader.u32()
    else:
        reader.name()
    return sort, core_sort == 0, form, of


def _skip_options(reader: BinaryReader) -> None:
    """Skip the options of a canonical definition."""
    for _ in range(reader.u32()):
        if reader.byte() >= 3:  # a memory, or a function; the others are encodings of text
            reader.u32()


def _section(section: int, data: bytes) -> bytes:
    return bytes((section,)) + _u32(len(data)) + data


def _u32(value: int) -> bytes:
    """A number as unsigned LEB128."""
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _unknown(what: str) -> BuildError:
    return BuildError(
        f"the component that componentize-qjs has made is not of the expected form: {what}",
        hint="Use the version of componentize-qjs that this release of tartlet names.",
    )
