"""How Rust spells the contract's names and types."""

from __future__ import annotations

from tartlet_bindings.layout import CoreType, resolved
from tartlet_bindings.model import (
    Alias,
    Enum,
    Handle,
    ListType,
    OptionType,
    Primitive,
    Record,
    ResultType,
    TupleType,
    Type,
    Variant,
)

CORE_TYPES: dict[CoreType, str] = {"i32": "u32", "i64": "u64", "f32": "f32", "f64": "f64"}
PRIMITIVES = {
    "bool": "bool", "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64", "s8": "i8", "s16": "i16", "s32": "i32",
    "s64": "i64", "f32": "f32", "f64": "f64", "char": "char", "string": "String",
}  # fmt: skip
_KEYWORDS = {"as", "in", "loop", "match", "move", "ref", "type", "use", "where", "yield"}


def snake(name: str) -> str:
    """A function, field or parameter."""
    spelled = name.replace("-", "_")
    return f"r#{spelled}" if spelled in _KEYWORDS else spelled


def camel(name: str) -> str:
    """A type, or a case of one."""
    return "".join(word.capitalize() for word in name.split("-"))


def owned(kind: Type | None) -> str:
    """The type of a value that the program has."""
    match kind:
        case None:
            return "()"
        case Primitive(name):
            return PRIMITIVES[name]
        case ListType(element):
            return f"Vec<{owned(element)}>"
        case OptionType(payload):
            return f"Option<{owned(payload)}>"
        case ResultType(ok, err):
            return f"Result<{owned(ok)}, {owned(err)}>"
        case TupleType(parts):
            return f"({', '.join(owned(part) for part in parts)})"
        case Handle(resource, _):
            return camel(resource.name)
        case Record() | Enum() | Variant() | Alias():
            return camel(kind.name)


def parameter(kind: Type) -> str:
    """The type of a parameter: text, lists, records and resources are lent."""
    match resolved(kind):
        case Primitive("string"):
            return "&str"
        case ListType(element):
            return f"&[{owned(element)}]"
        case OptionType(Primitive("string")):
            return "Option<&str>"
        case Record() | Variant() | Handle():
            return f"&{owned(kind)}"
        case _:
            return owned(kind)


def comment(docs: str, indent: str = "", mark: str = "///") -> list[str]:
    """A doc comment."""
    return [f"{indent}{mark} {line}".rstrip() for line in docs.split("\n")] if docs else []
