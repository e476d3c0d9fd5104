"""The signatures of what a compiled component imports and exports, as text that can be compared.

All types are written out, names of types left away, except resources, which are written as `interface.resource`:

    func(self: borrow<contexts.context>, role: enum{system, user}) -> result<_, record{code: u32, message: string}>
"""

from __future__ import annotations

from typing import Any

from wasmtime.component import Component
from wasmtime.component import _types as wit_types

from tartlet.wasm.wasm_engine import WasmEngine

Signatures = dict[str, str]
"""Signatures by item name: `poll`, `[method]context.fill`."""

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


def exported_signatures(wasm_engine: WasmEngine, component: Component) -> Signatures:
    """List the functions that a component exports at its top level."""
    exports = {name: extern.ty for name, extern in component.type.exports(wasm_engine.engine).items()}
    return {name: function_signature(ty, []) for name, ty in exports.items() if isinstance(ty, wit_types.FuncType)}


def function_signature(function_type: Any, resources: _ResourceNames) -> str:
    """Write a function type as text."""
    parameters = ", ".join(f"{name}: {_text(ty, resources)}" for name, ty in function_type.params)
    result = "" if function_type.result is None else f" -> {_text(function_type.result, resources)}"
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


def _text(ty: Any, resources: _ResourceNames) -> str:
    def of(part: Any) -> str:
        return "_" if part is None else _text(part, resources)

    def case(name: str, payload: Any) -> str:
        return name if payload is None else f"{name}({of(payload)})"

    match ty:
        case wit_types.ListType():
            return f"list<{of(ty.element)}>"
        case wit_types.OptionType():
            return f"option<{of(ty.payload)}>"
        case wit_types.ResultType():
            return f"result<{of(ty.ok)}, {of(ty.err)}>"
        case wit_types.TupleType():
            return f"tuple<{', '.join(of(element) for element in ty.elements)}>"
        case wit_types.RecordType():
            return f"record{{{', '.join(f'{name}: {of(field)}' for name, field in ty.fields)}}}"
        case wit_types.VariantType():
            return f"variant{{{', '.join(case(name, payload) for name, payload in ty.cases)}}}"
        case wit_types.EnumType():
            return f"enum{{{', '.join(ty.names)}}}"
        case wit_types.FlagsType():
            return f"flags{{{', '.join(ty.names)}}}"
        case wit_types.OwnType():
            return f"own<{_resource_name(ty.ty, resources)}>"
        case wit_types.BorrowType():
            return f"borrow<{_resource_name(ty.ty, resources)}>"
        case _:
            return str(type(ty).__name__).lower()  # Bool, U32, String, ... are called as in WIT


def _resource_name(ty: Any, resources: _ResourceNames) -> str:
    return next((name for known, name in resources if known == ty), "?")
