"""Writes docs/wit.md from the comments of the contract: `python -m tartlet.wit_docs docs/wit.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tartlet.contract import Contract, contract
from tartlet.wit_parser import Function, Member, TypeDefinition, TypeUse

COMMAND = "python -m tartlet.wit_docs docs/wit.md"


def write_reference(read: Contract) -> str:
    """Write all interfaces and worlds of the contract, with their comments, as Markdown."""
    lines = [
        "# The contract",
        "",
        f"`{read.package}@{read.version}`, from the files in `wit/`. Written by `{COMMAND}`; do not edit.",
    ]
    for interface in read.interfaces.values():
        lines += ["", f"## {interface.name}", "", *_paragraphs(interface.docs)]
        for definition in interface.types.values():
            lines += _type_lines(definition)
        for function in interface.functions.values():
            lines += ["", f"### `{_signature(function)}`", "", *_paragraphs(function.docs)]
    for world in read.worlds.values():
        lines += ["", f"## World {world.name}", "", *_paragraphs(world.docs), ""]
        lines += [f"- includes `{name}`" for name in world.includes]
        lines += [f"- imports `{name}`" for name in world.imports]
        lines += [f"- exports `{_signature(function)}`" for function in world.exports.values()]
    return "\n".join(lines) + "\n"


def _type_lines(definition: TypeDefinition) -> Iterator[str]:
    target = f" = {type_text(definition.target)}" if definition.target is not None else ""
    form = "type" if definition.form == "alias" else definition.form
    yield from ("", f"### {form} `{definition.name}{target}`", "", *_paragraphs(definition.docs))
    if definition.members:
        yield ""
        yield from (_member_line(member) for member in definition.members)


def _member_line(member: Member) -> str:
    kind = f": {type_text(member.type)}" if member.type is not None else ""
    docs = " ".join(member.docs.split())
    return f"- `{member.name}{kind}`" + (f": {docs}" if docs else "")


def _signature(function: Function) -> str:
    parameters = ", ".join(f"{name}: {type_text(kind)}" for name, kind in function.parameters)
    result = "" if function.result is None else f" -> {type_text(function.result)}"
    return f"{function.item_name}({parameters}){result}"


def type_text(use: TypeUse | None) -> str:
    """Write a type as wit does."""
    if use is None:
        return "_"
    if not use.arguments:
        return use.name
    return f"{use.name}<{', '.join(type_text(argument) for argument in use.arguments)}>"


def _paragraphs(docs: str) -> list[str]:
    return docs.splitlines()


def main() -> None:
    """Write the file that the command line names."""
    (target,) = sys.argv[1:]
    Path(target).write_text(write_reference(contract()), encoding="utf-8")


if __name__ == "__main__":
    main()
