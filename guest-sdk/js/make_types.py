"""Writes `src/contract.d.ts`: what componentize-qjs gives a program of the contract in wit/, as TypeScript's types.

python guest-sdk/js/make_types.py
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from tartlet.contract import Contract, contract
from tartlet.wit_parser import Function, Interface, TypeDefinition, TypeUse

OUTPUT = Path(__file__).parent / "src" / "contract.d.ts"
HEAD = """// Made by make_types.py of the contract in wit/: do not change it by hand.
// A function whose result may be an error throws an object whose `payload` is that error.
"""
NUMBERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64")
PLAIN = {name: "number" for name in NUMBERS} | {"string": "string", "char": "string", "bool": "boolean"}


def declarations(of: Contract) -> str:
    """The whole file."""
    modules = [_module(of, name, interface) for name, interface in of.interfaces.items()]
    return HEAD + "".join(modules)


def camel(name: str) -> str:
    """`max-tokens` as `maxTokens`."""
    first, *rest = name.split("-")
    return first + "".join(word.capitalize() for word in rest)


def pascal(name: str) -> str:
    """`stop-conditions` as `StopConditions`."""
    return "".join(word.capitalize() for word in name.split("-"))


def _module(of: Contract, name: str, interface: Interface) -> str:
    lines = []
    sources: dict[str, list[str]] = {}
    for local, (source, there) in interface.uses.items():
        renamed = pascal(there) if local == there else f"{pascal(there)} as {pascal(local)}"
        sources.setdefault(source, []).append(renamed)
    for source, names in sources.items():
        lines.append(f'import type {{ {", ".join(names)} }} from "{of.full_name(source)}";')
    for definition in interface.types.values():
        lines += _type(interface, definition)
    for function in interface.functions.values():
        if not function.item_name.startswith("["):
            lines += [*_docs(function.docs), f"export function {camel(function.item_name)}{_signature(function)};"]
    body = textwrap.indent("\n".join(lines), "  ")
    return f'\n{_text(_docs(interface.docs))}declare module "{of.full_name(name)}" {{\n{body}\n}}\n'


def _type(interface: Interface, definition: TypeDefinition) -> list[str]:
    name, docs = pascal(definition.name), _docs(definition.docs)
    if definition.form == "resource":
        return [*docs, f"export class {name} {{", *_indented(_methods(interface, definition.name)), "}"]
    if definition.form == "record":
        fields = [
            line
            for each in definition.members
            for line in (*_docs(each.docs), f"{camel(each.name)}: {_use(each.type)};")
        ]
        return [*docs, f"export interface {name} {{", *_indented(fields), "}"]
    if definition.form == "enum":
        return [*docs, f"export type {name} = {' | '.join(_quoted(each.name) for each in definition.members)};"]
    if definition.form == "variant":
        cases = [
            f"{{ tag: {_quoted(each.name)}{'' if each.type is None else f'; val: {_use(each.type)}'} }}"
            for each in definition.members
        ]
        return [*docs, f"export type {name} = {' | '.join(cases)};"]
    if definition.form == "alias":
        return [*docs, f"export type {name} = {_use(definition.target)};"]
    raise ValueError(f"{definition.name} is of the form {definition.form}, which has no type here")


def _methods(interface: Interface, resource: str) -> list[str]:
    lines = ["private constructor();", "[Symbol.dispose](): void;"]
    for function in interface.functions.values():
        kind, _, rest = function.item_name.partition("]")
        owner, _, name = rest.partition(".")
        if owner == resource and kind in ("[static", "[method"):
            static = "static " if kind == "[static" else ""
            lines += [*_docs(function.docs), f"{static}{camel(name)}{_signature(function)};"]
    return lines


def _signature(function: Function) -> str:
    parameters = [(name, use) for name, use in function.parameters if name != "self"]
    return f"({', '.join(f'{camel(name)}: {_use(use)}' for name, use in parameters)}): {_result(function.result)}"


def _result(use: TypeUse | None) -> str:
    if use is None:
        return "void"
    if use.name == "result":
        ok = use.arguments[0] if use.arguments else None
        return "void" if ok is None else _use(ok)
    return _use(use)


def _use(use: TypeUse | None) -> str:
    if use is None:
        return "void"
    if use.name in PLAIN:
        return PLAIN[use.name]
    arguments = [_use(each) for each in use.arguments]
    if use.name == "list":
        return "Uint8Array" if arguments[0] == "number" and _is_byte(use) else f"{_grouped(arguments[0])}[]"
    if use.name == "option":
        return f"{arguments[0]} | null"
    if use.name == "tuple":
        return f"[{', '.join(arguments)}]"
    if use.name in ("own", "borrow"):
        return arguments[0]
    return pascal(use.name)


def _is_byte(use: TypeUse) -> bool:
    item = use.arguments[0]
    return item is not None and item.name == "u8"


def _grouped(text: str) -> str:
    return f"({text})" if "|" in text else text


def _quoted(name: str) -> str:
    return f'"{name}"'


def _docs(docs: str) -> list[str]:
    if not docs:
        return []
    lines = docs.splitlines()
    if len(lines) == 1:
        return [f"/** {lines[0]} */"]
    return ["/**", *(f" * {line}".rstrip() for line in lines), " */"]


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


if __name__ == "__main__":
    OUTPUT.write_text(declarations(contract()), encoding="utf-8")
