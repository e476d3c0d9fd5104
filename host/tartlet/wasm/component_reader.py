"""Reads what a component imports and exports, without compiling it.

The binary format is that of the component model (design/mvp/Binary.md in its repository) and of WebAssembly. Sections
that say nothing about this are skipped, not copied. Cost: under a millisecond for a component of 35 MB.
"""

from __future__ import annotations

from dataclasses import dataclass

from tartlet.errors import InvalidComponentError
from tartlet.wasm.binary_reader import BinaryReader, MalformedError, TruncatedError, sections

_MAGIC = b"\0asm"
_CORE_MODULE = b"\x01\0\0\0"
_COMPONENT = b"\x0d\0\x01\0"
PREAMBLE_BYTES = 8

_IMPORT, _EXPORT = 10, 11  # sections of a component

_KINDS = {0: "core module", 1: "function", 2: "value", 3: "type", 4: "component", 5: "interface"}
_RESOURCE = "resource"


@dataclass(frozen=True, slots=True)
class Extern:
    """Something that a component imports or exports."""

    name: str
    kind: str  # a value of _KINDS, where instances are called interfaces; or a resource, for a type that is new


def read_externs(data: bytes) -> tuple[tuple[Extern, ...], tuple[Extern, ...]]:
    """List the imports and the exports of a component.

    Raises `InvalidComponentError`: `not_a_component` or `truncated`.
    """
    imports: list[Extern] = []
    exports: list[Extern] = []
    try:
        for section, reader in sections(BinaryReader(data, component_start(data))):
            if section == _IMPORT:
                imports += [read_import(reader) for _ in range(reader.u32())]
            elif section == _EXPORT:
                exports += [_read_export(reader) for _ in range(reader.u32())]
    except TruncatedError as problem:
        raise truncated_error(data, problem) from problem
    except MalformedError as problem:
        raise malformed_error(problem) from problem
    return tuple(imports), tuple(exports)


def component_start(data: bytes) -> int:
    """Check the first eight bytes, and return where the sections begin."""
    if data[:4] != _MAGIC[: len(data)] or not data:
        raise InvalidComponentError(
            "not a WebAssembly component: it does not begin with \\0asm",
            hint="`tartlet build` makes one of a program's source.",
            code="not_a_component",
        )
    if len(data) < PREAMBLE_BYTES:
        raise InvalidComponentError(f"the component is cut off after {len(data)} bytes", code="truncated")
    version = data[4:PREAMBLE_BYTES]
    if version == _CORE_MODULE:
        raise InvalidComponentError(
            "this is a core WebAssembly module, not a component",
            hint="Build it for a component target, or wrap it with `wasm-tools component new`.",
            code="not_a_component",
        )
    if version != _COMPONENT:
        raise InvalidComponentError(f"unknown WebAssembly version {version.hex(' ')}", code="not_a_component")
    return PREAMBLE_BYTES


def malformed_error(problem: MalformedError) -> InvalidComponentError:
    """The error for bytes that do not follow the format."""
    return InvalidComponentError(f"not a valid component: {problem}", code="not_a_component")


def truncated_error(data: bytes, problem: TruncatedError) -> InvalidComponentError:
    """The error for bytes, or a part of them, that end too early."""
    return InvalidComponentError(
        f"the component is cut off: {problem}, but there are only {len(data):,} bytes",
        hint="Copy or build it again.",
        code="truncated",
    )


def _read_name(reader: BinaryReader) -> str:
    """Read an import or export name. There is a third form, with attributes, that this engine has switched off."""
    form = reader.byte()
    if form > 1:
        raise MalformedError(f"a name of the unknown form {form}")
    return reader.name()


def read_import(reader: BinaryReader) -> Extern:
    """Read one import of a component."""
    name = _read_name(reader)
    return Extern(name, _read_description(reader))


def _read_export(reader: BinaryReader) -> Extern:
    name = _read_name(reader)
    sort = reader.byte()
    if sort == 0:
        reader.byte()  # which sort of core item
    reader.u32()  # its index
    if reader.byte():
        _read_description(reader)
    return Extern(name, _kind(sort))


def _read_description(reader: BinaryReader) -> str:
    """Read the type of an import or export, and return its kind."""
    sort = reader.byte()
    if sort == 0:
        reader.byte()  # 0x11, a module
        reader.u32()
    elif sort == 2:
        reader.byte()  # equal to a value, or of a type
        reader.skip_s33()
    elif sort == 3:
        if reader.byte() != 0:  # no type that is known already, but a new one
            return _RESOURCE
        reader.u32()
    else:
        reader.u32()
    return _kind(sort)


def _kind(sort: int) -> str:
    kind = _KINDS.get(sort)
    if kind is None:
        raise MalformedError(f"an item of the unknown sort {sort}")
    return kind
