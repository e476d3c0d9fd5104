"""Linking: binds a component's imports to host functions, once, for all its runs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from wasmtime.component import Component, Linker
from wasmtime.component import _types as wit_types

from tartlet.errors import InvalidComponentError
from tartlet.wasm.callbacks import LiveFibers, destructor_callback, epoch_callback, host_function_callback
from tartlet.wasm.host_function import HostFunction, Interfaces
from tartlet.wasm.library import NULL, Pointer, check, ffi, lib, pointer_of
from tartlet.wasm.lift import Lift, lifter
from tartlet.wasm.lower import Lower, lowerer
from tartlet.wasm.wasm_engine import WasmEngine


@dataclass(frozen=True, slots=True)
class ExportFunction:
    """A function that a component exports at its top level."""

    index: Pointer
    lowers: tuple[Lower, ...]
    lift: Lift | None


class LinkedComponent:
    """A component whose imports are bound to host functions: what fibers are made of.

    Interfaces are looked up without the version that the component asks for, and defined under exactly that version.
    Imports that `interfaces` does not have are bound too: calling one is a trap.

    Cost: some 10 us per host function; nothing per run. Thread: any; fibers of several executors may share it.
    """

    def __init__(self, wasm_engine: WasmEngine, component: Component, interfaces: Interfaces) -> None:
        self.wasm_engine = wasm_engine
        self.component = component
        self.fibers: LiveFibers = {}  # those that have a store
        self._resources: list[tuple[Any, int]] = []  # resource types of the host's, with their numbers
        self._callbacks: list[Pointer] = []  # must live as long as the linker
        self._linker = Linker(wasm_engine.engine)
        self._define(_imported_items(wasm_engine, component), interfaces)
        self._linker.define_unknown_imports_as_traps(component)
        self.epoch_callback = epoch_callback(self.fibers)
        self.component_pointer = pointer_of(component)
        self.linker_pointer = pointer_of(self._linker)
        self.exports = self._export_functions()

    def export(self, name: str) -> ExportFunction:
        """Look an exported function up. Raises `InvalidComponentError` if there is none of that name."""
        function = self.exports.get(name)
        if function is None:
            exported = ", ".join(self.exports) or "nothing"
            raise InvalidComponentError(
                f"the component does not export a function {name!r}; it exports: {exported}", code="missing_export"
            )
        return function

    def _define(self, items: dict[str, dict[str, Any]], interfaces: Interfaces) -> None:
        offered = {name: interfaces.get(name.split("@")[0], {}) for name in items}
        numbers = itertools.count(1)
        for interface, entries in items.items():  # all resource types first: functions of other interfaces name them
            for name, ty in entries.items():
                if isinstance(ty, wit_types.ResourceType) and name in offered[interface] and not self._has_number(ty):
                    self._resources.append((ty, next(numbers)))
        with self._linker.root() as root:
            for interface, entries in items.items():
                if offered[interface]:
                    with root.add_instance(interface) as instance:
                        for name, ty in entries.items():
                            self._define_item(pointer_of(instance), interface, name, ty, offered[interface].get(name))

    def _define_item(
        self, instance: Pointer, interface: str, name: str, ty: Any, function: HostFunction | None
    ) -> None:
        encoded = name.encode()
        if isinstance(ty, wit_types.ResourceType) and self._has_number(ty):
            callback = destructor_callback(name, function or _ignore, self.fibers)
            resource_type = lib.wasmtime_component_resource_type_new_host(self._number(ty))
            check(
                lib.wasmtime_component_linker_instance_add_resource(
                    instance, encoded, len(encoded), resource_type, callback, NULL, NULL
                )
            )
            lib.wasmtime_component_resource_type_delete(resource_type)
        elif isinstance(ty, wit_types.FuncType) and function is not None:
            lifts = [lifter(parameter) for _, parameter in ty.params]
            lower = None if ty.result is None else lowerer(ty.result, self._number)
            callback = host_function_callback(f"{interface} {name}", function, lifts, lower, self.fibers)
            check(
                lib.wasmtime_component_linker_instance_add_func_async(
                    instance, encoded, len(encoded), callback, NULL, NULL
                )
            )
        else:
            return
        self._callbacks.append(callback)

    def _has_number(self, resource_type: Any) -> bool:
        return any(known == resource_type for known, _ in self._resources)

    def _number(self, resource_type: Any) -> int:
        for known, number in self._resources:
            if known == resource_type:
                return number
        raise TypeError("a host function returns a resource of a type that the host does not define")

    def _export_functions(self) -> dict[str, ExportFunction]:
        exports = {}
        for name, extern in self.component.type.exports(self.wasm_engine.engine).items():
            ty = extern.ty
            if isinstance(ty, wit_types.FuncType):
                encoded = name.encode()
                index = lib.wasmtime_component_get_export_index(self.component_pointer, NULL, encoded, len(encoded))
                exports[name] = ExportFunction(
                    index=ffi.gc(index, lib.wasmtime_component_export_index_delete),
                    lowers=tuple(lowerer(parameter, self._number) for _, parameter in ty.params),
                    lift=None if ty.result is None else lifter(ty.result),
                )
        return exports


def _ignore(_fiber: object, _rep: int) -> None:
    """Do nothing when a handle of a type without a destructor is dropped."""


def _imported_items(wasm_engine: WasmEngine, component: Component) -> dict[str, dict[str, Any]]:
    """The types of all items of the interfaces that a component imports."""
    return {
        name: {item: extern.ty for item, extern in ty.exports(wasm_engine.engine).items()}
        for name, ty in ((name, extern.ty) for name, extern in component.type.imports(wasm_engine.engine).items())
        if isinstance(ty, wit_types.ComponentInstanceType)
    }
