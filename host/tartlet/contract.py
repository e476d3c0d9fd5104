"""The contract between programs and the host: what wit/ says, and whether a component keeps to it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources

from wasmtime.component import Component

from tartlet.errors import InvalidComponentError
from tartlet.wasm.component_check import check_component
from tartlet.wasm.component_reader import read_externs
from tartlet.wasm.signatures import exported_signatures, imported_signatures
from tartlet.wasm.wasm_engine import WasmEngine
from tartlet.wit_parser import Function, Interface, Package, TypeUse, World, parse

_MAX_NAME_CHARS = 100  # of a name that a component may have chosen


@dataclass(slots=True)
class Contract:
    """All interfaces and worlds of a package."""

    package: str
    version: str
    interfaces: dict[str, Interface] = field(default_factory=dict)
    worlds: dict[str, World] = field(default_factory=dict)

    def full_name(self, interface: str) -> str:
        """Write an interface's name as components import it: `tartlet:inferlet/events@0.1.0`."""
        return f"{self.package}/{interface}@{self.version}"

    def imports(self, world: str) -> list[str]:
        """List the interfaces that components of a world may import, with those of the worlds that it includes."""
        definition = self.worlds[world]
        included = [interface for other in definition.includes for interface in self.imports(other)]
        return list(dict.fromkeys([*included, *definition.imports]))

    def exports(self, world: str) -> dict[str, str]:
        """Give the signatures of the functions that components of a world must export."""
        definition = self.worlds[world]
        included = {name: text for other in definition.includes for name, text in self.exports(other).items()}
        nowhere = Interface(world, "", uses=definition.uses)
        return included | {name: self._signature(nowhere, function) for name, function in definition.exports.items()}

    def signatures(self, interface: str) -> dict[str, str]:
        """Give the signatures of an interface's functions by item name, written as tartlet.wasm.signatures does."""
        definition = self.interfaces[interface]
        return {name: self._signature(definition, function) for name, function in definition.functions.items()}

    def check_component(self, data: bytes, world: str = "inferlet") -> None:
        """Refuse, before compiling, bytes that are no component of a world. Raises `InvalidComponentError`."""
        offered = [self.full_name(interface) for interface in self.imports(world)]
        check_component(data, offered, list(self.exports(world)))

    def world_of(self, data: bytes) -> str:
        """Tell which world the bytes of a program seem to be of: `controller` or `inferlet`.

        Raises `InvalidComponentError` for what is no component.
        """
        exported = {extern.name for extern in read_externs(data)[1]}
        is_controller = "run" not in exported and not exported.isdisjoint(self.exports("controller"))
        return "controller" if is_controller else "inferlet"

    def check_types(self, wasm_engine: WasmEngine, component: Component, world: str = "inferlet") -> None:
        """Refuse, after compiling, a component whose functions have other types than the contract's.

        Raises `InvalidComponentError` (`wrong_world`) with both signatures. Cost: some 10 ms.
        """
        for name, found in imported_signatures(wasm_engine, component).items():
            package, _, interface = name.partition("@")[0].partition("/")
            if package == self.package and interface in self.interfaces:
                _compare(interface, found, self.signatures(interface), must_have_all=False)
        exports = self.exports(world)
        _compare(world, exported_signatures(wasm_engine, component, exports), exports, must_have_all=True)

    def _signature(self, interface: Interface, function: Function) -> str:
        parameters = ", ".join(f"{name}: {self._text(interface, ty)}" for name, ty in function.parameters)
        result = "" if function.result is None else f" -> {self._text(interface, function.result)}"
        return f"func({parameters}){result}"

    def _text(self, interface: Interface, use: TypeUse | None) -> str:
        """Write a type out, down to types that are built in, and resources."""
        if use is None:
            return "_"
        if use.name in ("own", "borrow"):
            assert use.arguments[0] is not None
            return f"{use.name}<{self._resource_name(interface, use.arguments[0].name)}>"
        if use.name == "result":
            ok, err = (*use.arguments, None, None)[:2]
            return f"result<{self._text(interface, ok)}, {self._text(interface, err)}>"
        if use.arguments:
            return f"{use.name}<{', '.join(self._text(interface, argument) for argument in use.arguments)}>"
        if use.name in interface.uses:
            source, name = interface.uses[use.name]
            return self._text(self.interfaces[source], TypeUse(name))
        if use.name in interface.types:
            return self._definition_text(interface, use.name)
        return use.name

    def _definition_text(self, interface: Interface, name: str) -> str:
        definition = interface.types[name]
        if definition.form == "alias":
            return self._text(interface, definition.target)
        if definition.form == "resource":
            return f"own<{interface.name}.{name}>"
        parts = []
        for member in definition.members:
            if definition.form == "record":
                parts.append(f"{member.name}: {self._text(interface, member.type)}")
            elif member.type is not None:
                parts.append(f"{member.name}({self._text(interface, member.type)})")
            else:
                parts.append(member.name)
        return f"{definition.form}{{{', '.join(parts)}}}"

    def _resource_name(self, interface: Interface, name: str) -> str:
        if name in interface.uses:
            source, name = interface.uses[name]
            return self._resource_name(self.interfaces[source], name)
        return f"{interface.name}.{name}"


@functools.cache
def contract() -> Contract:
    """Read the contract that ships with this package."""
    files = sorted(resources.files("tartlet").joinpath("wit").iterdir(), key=lambda file: file.name)
    return merge([parse(file.read_text(encoding="utf-8")) for file in files if file.name.endswith(".wit")])


def merge(packages: list[Package]) -> Contract:
    """Put the files of a package together. Raises `ValueError` if they are not of one package."""
    names = {(package.name, package.version) for package in packages}
    if len(names) != 1:
        raise ValueError(f"the files are not of one package and version: {sorted(names)}")
    merged = Contract(*names.pop())
    for package in packages:
        merged.interfaces |= package.interfaces
        merged.worlds |= package.worlds
    return merged


def _compare(where: str, found: Mapping[str, str], expected: Mapping[str, str], *, must_have_all: bool) -> None:
    """Compare signatures: all of the component's imports, or all that the world must export."""
    for name in expected if must_have_all else found:
        in_component, in_contract = found.get(name), expected.get(name)
        if in_component != in_contract:
            raise InvalidComponentError(
                f"{where}: the function {name[:_MAX_NAME_CHARS]} is not that of the contract\n"
                f"  component: {in_component or '(not there)'}\n  contract:  {in_contract or '(not there)'}",
                hint="Build the component again with an SDK of this host's version.",
                code="wrong_world",
            )
