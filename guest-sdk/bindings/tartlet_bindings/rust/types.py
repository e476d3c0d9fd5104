"""Types of the contract: what they are in Rust, and how they lie in memory."""

from __future__ import annotations

from collections.abc import Iterable

from tartlet_bindings.layout import alignment_of, offsets, payload_offset, payloads, resolved, size_of
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
    Resource,
    ResultType,
    TupleType,
    Type,
    Variant,
)
from tartlet_bindings.rust.functions import at, function
from tartlet_bindings.rust.names import camel, comment, owned, snake


class Directions:
    """Which types programs give the host, and which the host gives them."""

    def __init__(self, contract: Contract) -> None:
        self.stored: set[int] = set()
        self.loaded: set[int] = set()
        for interface in contract.interfaces:
            for each in interface.functions:
                for _, kind in each.parameters:
                    _mark(kind, self.stored)
                _mark(each.result, self.loaded)
        for world in contract.worlds:
            for each in world.exports:
                for _, kind in each.parameters:
                    _mark(kind, self.loaded)
                _mark(each.result, self.stored)


def _mark(kind: Type | None, marked: set[int]) -> None:
    """Mark a type and all that it is made of."""
    if isinstance(kind, Alias):
        _mark(kind.target, marked)
        return
    if kind is None or id(kind) in marked:
        return
    marked.add(id(kind.resource) if isinstance(kind, Handle) else id(kind))
    for part in _parts(kind):
        _mark(part, marked)


def _parts(kind: Type) -> Iterable[Type | None]:
    match kind:
        case ListType(element):
            return [element]
        case Record() | TupleType():
            return [each.type for each in kind.fields] if isinstance(kind, Record) else kind.parts
        case Variant() | Enum() | OptionType() | ResultType():
            return payloads(kind)
        case _:
            return []


def definition(kind: NamedType, interface: Interface, directions: Directions) -> list[str]:
    """The lines that define a type."""
    stored, loaded = id(kind) in directions.stored, id(kind) in directions.loaded
    match kind:
        case Alias():
            return [*comment(kind.docs), f"pub type {camel(kind.name)} = {owned(kind.target)};"]
        case Record():
            return _record(kind, stored=stored, loaded=loaded)
        case Enum():
            return _enum(kind, stored=stored, loaded=loaded)
        case Variant():
            assert not loaded, "no variant is read yet"
            return _variant(kind)
        case Resource():
            return _resource(kind, interface, loaded=loaded)


def _record(kind: Record, *, stored: bool, loaded: bool) -> list[str]:
    name, places = camel(kind.name), list(zip(kind.fields, offsets(kind), strict=True))
    lines = [*comment(kind.docs), "#[derive(Clone, Debug, PartialEq)]", f"pub struct {name} {{"]
    for each in kind.fields:
        lines += [*comment(each.docs, "    "), f"    pub {snake(each.name)}: {owned(each.type)},"]
    lines += ["}", "", *_abi(name, kind)]
    if stored:
        stores = [f"self.{snake(each.name)}.store({at('at', offset)}, arena);" for each, offset in places]
        lines += _store(name, stores)
    if loaded:
        loads = [f"    {snake(each.name)}: Load::load({at('at', offset)})," for each, offset in places]
        lines += _load(name, ["Self {", *loads, "}"])
    return lines


def _enum(kind: Enum, *, stored: bool, loaded: bool) -> list[str]:
    name, last = camel(kind.name), len(kind.cases) - 1
    lines = [*comment(kind.docs), "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]", "#[repr(u8)]"]
    lines.append(f"pub enum {name} {{")
    for case in kind.cases:
        lines += [*comment(case.docs, "    "), f"    {camel(case.name)},"]
    lines += ["}", "", *_abi(name, kind)]
    if stored:
        lines += _store(name, ["at.write(*self as u8);"], arena="_arena")
    if loaded:
        numbers = [str(number) if number < last else "_" for number in range(last + 1)]
        arms = [f"    {each} => Self::{camel(case.name)}," for each, case in zip(numbers, kind.cases, strict=True)]
        lines += _load(name, ["match at.read() {", *arms, "}"])
    return lines


def _variant(kind: Variant) -> list[str]:
    name, arms = camel(kind.name), []
    lines = [*comment(kind.docs), "#[derive(Clone, Debug, PartialEq)]", f"pub enum {name} {{"]
    for number, case in enumerate(kind.cases):
        spelled = camel(case.name)
        if case.payload is None:
            lines += [*comment(case.docs, "    "), f"    {spelled},"]
            arms.append(f"    Self::{spelled} => at.write({number}),")
        else:
            lines += [*comment(case.docs, "    "), f"    {spelled}({owned(case.payload)}),"]
            arms += [f"    Self::{spelled}(value) => {{", f"        at.write({number});"]
            arms += [f"        value.store({at('at', payload_offset(kind))}, arena);", "    }"]
    return [*lines, "}", "", *_abi(name, kind), *_store(name, ["match self {", *arms, "}"])]


def _resource(kind: Resource, interface: Interface, *, loaded: bool) -> list[str]:
    name = camel(kind.name)
    lines = [*comment(kind.docs), "#[derive(Debug)]", f"pub struct {name}(u32);", "", f"impl {name} {{"]
    lines += ["    pub(crate) fn handle(&self) -> u32 {", "        self.0", "    }"]
    for each in kind.functions:
        lines += ["", *(f"    {line}".rstrip() for line in function(each, interface.module))]
    lines += ["}", "", f"impl Drop for {name} {{", "    fn drop(&mut self) {"]
    lines += [f'        #[link(wasm_import_module = "{interface.module}")]', '        extern "C" {']
    lines += [f'            #[link_name = "[resource-drop]{kind.name}"]', "            fn call(_: u32);", "        }"]
    lines += ["        // SAFETY: nobody else has this handle.", "        unsafe { call(self.0) }", "    }", "}"]
    own = Handle(kind, owned=True)
    return [*lines, "", *_abi(name, own), *(_load(name, ["Self(u32::load(at))"]) if loaded else [])]


def _abi(name: str, kind: Type) -> list[str]:
    size, alignment = size_of(resolved(kind)), alignment_of(resolved(kind))
    sizes = [f"    const SIZE: usize = {size};", f"    const ALIGN: usize = {alignment};"]
    return [f"impl Abi for {name} {{", *sizes, "}"]


def _store(name: str, body: list[str], arena: str = "arena") -> list[str]:
    head = f"    unsafe fn store(&self, at: *mut u8, {arena}: &mut Arena) {{"
    return ["", f"impl Store for {name} {{", head, *(f"        {line}" for line in body), "    }", "}"]


def _load(name: str, body: list[str]) -> list[str]:
    head = "    unsafe fn load(at: *const u8) -> Self {"
    return ["", f"impl Load for {name} {{", head, *(f"        {line}" for line in body), "    }", "}"]
