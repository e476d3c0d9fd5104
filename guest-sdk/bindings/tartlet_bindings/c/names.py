"""What things are called in C."""

from __future__ import annotations

from collections import Counter

from tartlet_bindings.model import (
    Contract,
    Function,
    Handle,
    Interface,
    ListType,
    NamedType,
    OptionType,
    Primitive,
    ResultType,
    TupleType,
    Type,
)

PREFIX = "tartlet"
PRIMITIVES = {
    "bool": "bool", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "s8": "int8_t",
    "s16": "int16_t", "s32": "int32_t", "s64": "int64_t", "f32": "float", "f64": "double", "char": "uint32_t",
    "string": f"{PREFIX}_string",
}  # fmt: skip
KEYWORDS = frozenset({"auto", "break", "case", "const", "default", "do", "enum", "float", "for", "if", "int", "long"})


class Names:
    """The names of a contract's items.

    A method has its resource's name before its own; any other function its interface's. A type has its own name, and
    its interface's before it where another type or a function would have the same.
    """

    def __init__(self, contract: Contract) -> None:
        names = Counter(kind.name for interface in contract.interfaces for kind in interface.types)
        functions = {self.function(each, function) for each in contract.interfaces for function in each.functions}
        self._ambiguous = {
            name for name, number in names.items() if number > 1 or f"{PREFIX}_{snake(name)}" in functions
        }

    def type(self, kind: Type | NamedType) -> str:
        """The C type of a value."""
        return PRIMITIVES[kind.name] if isinstance(kind, Primitive) else f"{PREFIX}_{self.stem(kind)}"

    def stem(self, kind: Type | NamedType | None) -> str:
        """The name of a type as part of others' names: `list_token` of `list<token>`."""
        match kind:
            case None:
                return "none"
            case Primitive(name):
                return name
            case ListType(element):
                return f"list_{self.stem(element)}"
            case OptionType(payload):
                return f"option_{self.stem(payload)}"
            case ResultType(ok, err):
                return f"result_{self.stem(ok)}_{self.stem(err)}"
            case TupleType(parts):
                return "_".join(["tuple", *(self.stem(part) for part in parts)])
            case Handle(resource):
                return self.stem(resource)
            case _:
                own = snake(kind.name)
                return f"{snake(kind.interface)}_{own}" if kind.name in self._ambiguous else own

    def constant(self, kind: NamedType, case: str) -> str:
        """The constant that stands for a case."""
        return f"{self.type(kind)}_{snake(case)}".upper()

    def function(self, interface: Interface, function: Function) -> str:
        """The C function that calls a function of the host."""
        owner = interface.name if function.resource is None else function.resource.name
        return f"{PREFIX}_{snake(owner)}_{snake(function.name)}"


def snake(name: str) -> str:
    """A kebab-case name in snake_case."""
    return name.replace("-", "_")


def variable(name: str) -> str:
    """The name of a field or parameter."""
    return f"{snake(name)}_" if name in KEYWORDS else snake(name)


def comment(docs: str, indent: str = "") -> list[str]:
    """A text as the lines of a comment; none if it is empty."""
    if not docs:
        return []
    first, *others = docs.splitlines()
    lines = [f"{indent}/** {first}", *(f"{indent} * {line}".rstrip() for line in others)]
    return [*lines[:-1], f"{lines[-1]} */"]
