"""The signatures of what a compiled component imports and exports, as text that can be compared.

All types are written out, names of types left away, except resources, which are written as `interface.resource`:

    func(self: borrow<contexts.context>, role: enum{system, user}) -> result<_, record{code: u32, message: string}>
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from wasmtime.component import Component
from wasmtime.component import _types as wit_types

from tartlet.wasm.wasm_engine import WasmEngine

Signatures = dict[str, str]
"""Signatures by item name: `poll`, `[method]context.fill`."""

_MAX_CHARS = 10_000
"""Of a signature: some ten times the longest of ours."""

_ResourceNames = list[tuple[Any, str]]


def imported_signatures(wasm_engine: WasmEngine, component: Component) -> dict[str, Signatures]:
    """List the functions that a component imports, by interface name with its version."""
    engine = wasm_engine.engine
    interfaces = {
        name: {item: extern.ty for item, extern in ty.exports(engine).items()}
        for name, ty in ((name, extern.ty) for name, extern in component.type.imports(engine).items())
        if isinstance(ty, wit_types.ComponentInstanceType)
    }
    resources = _resource_names(interfaces)
    return {
        interface: {
            item: function_signature(ty, resources) for item, ty in items.items() if isinstance(ty, wit_types.FuncType)
        }
        for interface, items in interfaces.items()
    }


def exported_signatures(wasm_engine: WasmEngine, component: Component, names: Collection[str]) -> Signatures:
    """List those functions of `names` that a component exports at its top level."""
    exports = {name: extern.ty for name, extern in component.type.exports(wasm_engine.engine).items() if name in names}
    return {name: function_signature(ty, []) for name, ty in exports.items() if isinstance(ty, wit_types.FuncType)}


def function_signature(function_type: Any, resources: _ResourceNames) -> str:
    """Write a function type as text, or that it is longer than any that this host would have."""
    writer = _Writer(resources)
    try:
        parameters = ", ".join(f"{writer.name(name)}: {writer.text(ty)}" for name, ty in function_type.params)
        result = "" if function_type.result is None else f" -> {writer.text(function_type.result)}"
    except _TooLongError:
        return f"(types of more than {_MAX_CHARS:,} characters)"
    return f"func({parameters}){result}"


def _resource_names(interfaces: dict[str, dict[str, Any]]) -> _ResourceNames:
    """Name each resource type after the interface that defines it: the first, as components import in that order."""
    names: _ResourceNames = []
    for interface, items in interfaces.items():
        short = interface.partition("@")[0].rpartition("/")[2]
        for item, ty in items.items():
            if isinstance(ty, wit_types.ResourceType) and not any(known == ty for known, _ in names):
                names.append((ty, f"{short}.{item}"))
    return names


class _TooLongError(Exception):
    pass


class _Writer:
    """Writes out the types of one function, which may be nested so that it would take gigabytes."""

    def __init__(self, resources: _ResourceNames) -> None:
        self._resources = resources
        self._num_left = _MAX_CHARS

    def name(self, name: str) -> str:
        """Count what is written: all but the brackets. Raises `_TooLongError`."""
        self._num_left -= len(name)
        if self._num_left < 0:
            raise _TooLongError
        return name

    def text(self, ty: Any) -> str:
        """A type, with all that it consists of. Raises `_TooLongError`."""
        match ty:
            case wit_types.ListType():
                return f"{self.name('list')}<{self._of(ty.element)}>"
            case wit_types.OptionType():
                return f"{self.name('option')}<{self._of(ty.payload)}>"
            case wit_types.ResultType():
                return f"{self.name('result')}<{self._of(ty.ok)}, {self._of(ty.err)}>"
            case wit_types.TupleType():
                return f"{self.name('tuple')}<{', '.join(self._of(element) for element in ty.elements)}>"
            case wit_types.RecordType():
                fields = (f"{self.name(name)}: {self._of(field)}" for name, field in ty.fields)
                return f"{self.name('record')}{{{', '.join(fields)}}}"
            case wit_types.VariantType():
                cases = (self._case(name, payload) for name, payload in ty.cases)
                return f"{self.name('variant')}{{{', '.join(cases)}}}"
            case wit_types.EnumType():
                return f"{self.name('enum')}{{{', '.join(self.name(name) for name in ty.names)}}}"
            case wit_types.FlagsType():
                return f"{self.name('flags')}{{{', '.join(self.name(name) for name in ty.names)}}}"
            case wit_types.OwnType():
                return f"{self.name('own')}<{_resource_name(ty.ty, self._resources)}>"
            case wit_types.BorrowType():
                return f"{self.name('borrow')}<{_resource_name(ty.ty, self._resources)}>"
            case _:
                return self.name(str(type(ty).__name__).lower())  # Bool, U32, String, ... are called as in WIT

    def _of(self, part: Any) -> str:
        return "_" if part is None else self.text(part)

    def _case(self, name: str, payload: Any) -> str:
        return self.name(name) if payload is None else f"{self.name(name)}({self._of(payload)})"


def _resource_name(ty: Any, resources: _ResourceNames) -> str:
    return next((name for known, name in resources if known == ty), "?")
