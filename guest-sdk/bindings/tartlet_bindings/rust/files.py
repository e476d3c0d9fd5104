"""The files of the bindings in Rust: one for each interface, their list, and what the worlds are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tartlet_bindings.model import (
    Alias,
    Contract,
    Enum,
    Handle,
    Interface,
    ListType,
    NamedType,
    OptionType,
    Record,
    ResultType,
    TupleType,
    Type,
    Variant,
)
from tartlet_bindings.reading import world_section
from tartlet_bindings.rust.functions import WIDTH, function
from tartlet_bindings.rust.names import camel, comment
from tartlet_bindings.rust.types import Directions, definition

NOTICE = "// Written by `make bindings` from wit/; do not edit.\n"
_RUNNERS_ONLY = ("source",)
"""Interfaces that only the runners which ship with Tartlet may import."""
WIT = Path(__file__).parents[4] / "wit"
_WORLDS = ("inferlet", "controller")
_MODULES = """
//! The contract as it is: its types, and its functions as the host offers them. The rest of the SDK is made of these.

pub(crate) mod abi;
#[rustfmt::skip]
pub(crate) mod component_type;
"""


def interfaces(contract: Contract) -> list[Interface]:
    """Those that programs may import, by name."""
    return sorted((each for each in contract.interfaces if each.name not in _RUNNERS_ONLY), key=lambda each: each.name)


def modules_file(contract: Contract) -> str:
    """`mod.rs`."""
    return NOTICE + _MODULES + "".join(f"#[rustfmt::skip]\npub mod {each.name};\n" for each in interfaces(contract))


def interface_file(contract: Contract, interface: Interface) -> str:
    """The types and functions of one interface."""
    directions = Directions(contract)
    blocks = [definition(kind, interface, directions) for kind in interface.types]
    blocks += [function(each, interface.module) for each in interface.functions if each.kind == "freestanding"]
    body = "\n\n".join("\n".join(block) for block in blocks)
    uses = "\n".join(_uses(contract, interface, body))
    docs = "\n".join(comment(interface.docs, mark="//!"))
    return f"{NOTICE}\n{docs}\n\n{uses}\n\n{body}\n"


def _uses(contract: Contract, interface: Interface, body: str) -> Iterator[str]:
    """What a file takes from others."""
    code = re.sub(r"//.*", "", body)
    marks = {"Store": r"\bStore\b|\.store\(|::list\(", "Load": r"\bLoad\b|u32::load"}
    names = ("Abi", "Area", "Arena", "Load", "Store")
    yield from _use("abi", [each for each in names if re.search(marks.get(each, rf"\b{each}\b"), code)])
    spelled = {kind for each in _spelled(interface) for kind in _named(each)}
    for other in interfaces(contract):
        if other is not interface:
            yield from _use(other.name, sorted({camel(each.name) for each in spelled if each.interface == other.name}))


def _spelled(interface: Interface) -> Iterator[Type]:
    """The types that stand in a file as they are written: those of fields, payloads, parameters and results."""
    for kind in interface.types:
        match kind:
            case Record():
                yield from (each.type for each in kind.fields)
            case Variant():
                yield from (case.payload for case in kind.cases if case.payload is not None)
            case Alias():
                yield kind.target
    for each in interface.functions:
        yield from (kind for name, kind in each.parameters if name != "self")
        if each.result is not None:
            yield each.result


def _named(kind: Type) -> Iterator[NamedType]:
    """The types with a name that a type is spelled with."""
    match kind:
        case Record() | Enum() | Variant() | Alias():
            yield kind
        case Handle(resource, _):
            yield resource
        case ListType(part) | OptionType(part):
            yield from _named(part)
        case ResultType(ok, err):
            yield from (name for part in (ok, err) if part is not None for name in _named(part))
        case TupleType(parts):
            yield from (name for part in parts for name in _named(part))


def _use(module: str, names: list[str]) -> Iterator[str]:
    if len(names) == 1:
        yield f"use super::{module}::{names[0]};"
    elif names:
        yield f"use super::{module}::{{{', '.join(names)}}};"


def worlds_file(contract: Contract) -> str:
    """What the worlds are, as a section of a module that `wasm-tools component new` reads."""
    text = f"{NOTICE}\n//! The worlds, as tools that make components read them from a section of a module.\n"
    for name in _WORLDS:
        section = world_section(WIT, name)
        text += f'\n/// The world `{name}`.\npub const {name.upper()}: &[u8; {len(section)}] = b"\\\n'
        text += "".join(f"    {line}\\\n" for line in _literal(section)) + '    ";\n'
    return text


def _literal(data: bytes) -> Iterator[str]:
    """Bytes as lines of a byte string, in which a backslash at the end skips the blanks that begin the next line."""
    line = ""
    for byte in data:
        is_plain = 0x21 <= byte < 0x7F and byte not in b'"\\'
        spelled = chr(byte) if is_plain else f"\\x{byte:02x}"
        if len(line) + len(spelled) > WIDTH - 6:
            yield line
            line = ""
        line += spelled
    yield line
