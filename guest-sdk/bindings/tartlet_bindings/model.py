"""The contract as objects: worlds, interfaces, functions and types. Names are WIT's own, in kebab-case.

Types with a name (records, enums, variants, resources, aliases) are one object each, compared by identity, however many
interfaces use them. Types without one (lists, options, ...) are equal if what they are made of is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias


class CannotBindError(Exception):
    """The contract uses a form of WIT for which this generator writes nothing: teach it that, or use another form."""


PrimitiveName = Literal[
    "bool", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64", "char", "string",
]  # fmt: skip


@dataclass(frozen=True)
class Primitive:
    """A type that is built into WIT."""

    name: PrimitiveName


@dataclass(frozen=True)
class ListType:
    """`list<element>`."""

    element: Type


@dataclass(frozen=True)
class OptionType:
    """`option<payload>`."""

    payload: Type


@dataclass(frozen=True)
class ResultType:
    """`result<ok, err>`; either can be without a value."""

    ok: Type | None
    err: Type | None


@dataclass(frozen=True)
class TupleType:
    """`tuple<...>`."""

    parts: tuple[Type, ...]


@dataclass(frozen=True)
class Handle:
    """A resource that is given away (`own<T>`), or lent for one call (`borrow<T>`)."""

    resource: Resource
    owned: bool


@dataclass(frozen=True, eq=False)
class Named:
    """What all types with a name have."""

    name: str
    interface: str
    """The interface that defines it."""
    docs: str


@dataclass(frozen=True, eq=False)
class Field:
    """A field of a record."""

    name: str
    type: Type
    docs: str


@dataclass(frozen=True, eq=False)
class Record(Named):
    """A type with fields."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """A case of an enum or a variant. Those of enums have no payload."""

    name: str
    payload: Type | None
    docs: str


@dataclass(frozen=True, eq=False)
class Enum(Named):
    """One of some names."""

    cases: tuple[Case, ...]


@dataclass(frozen=True, eq=False)
class Variant(Named):
    """One of some cases, each with a payload or without."""

    cases: tuple[Case, ...]


@dataclass(frozen=True, eq=False)
class Alias(Named):
    """Another name for a type. `use` makes none: it gives the type itself."""

    target: Type


@dataclass(eq=False)
class Resource:
    """Something that the host holds, and the program knows by a handle."""

    name: str
    interface: str
    docs: str
    functions: list[Function] = field(default_factory=list)
    """Its methods and static functions, in the order of the file."""


Structure: TypeAlias = (
    Primitive | ListType | OptionType | ResultType | TupleType | Handle | Record | Enum | Variant
)  # fmt: skip
Type: TypeAlias = Structure | Alias
NamedType: TypeAlias = Record | Enum | Variant | Alias | Resource


@dataclass(frozen=True, eq=False)
class Function:
    """A function of an interface, a resource or a world."""

    import_name: str
    """Its name in a component, such as `[method]context.fork`."""
    kind: Literal["freestanding", "method", "static"]
    resource: Resource | None
    """Whose method or static function it is."""
    parameters: tuple[tuple[str, Type], ...]
    """Names and types; a method's first is `self`."""
    result: Type | None
    docs: str

    @property
    def name(self) -> str:
        """Its own name: that of `[method]context.fork` is `fork`."""
        return self.import_name.rpartition("]")[2].rpartition(".")[2]


@dataclass(frozen=True, eq=False)
class Interface:
    """Types and functions that belong together."""

    name: str
    module: str
    """Its name in a component: `tartlet:inferlet/contexts@0.1.0`."""
    types: tuple[NamedType, ...]
    """Those that it defines, each after those that it is made of."""
    functions: tuple[Function, ...]
    """All, methods and static functions of its resources included."""
    docs: str


@dataclass(frozen=True, eq=False)
class World:
    """What a kind of component imports and exports."""

    name: str
    imports: tuple[Interface, ...]
    exports: tuple[Function, ...]
    docs: str


@dataclass(frozen=True, eq=False)
class Contract:
    """All of a package: its interfaces, each after those that it uses, and its worlds."""

    package: str
    """With its version: `tartlet:inferlet@0.1.0`."""
    interfaces: tuple[Interface, ...]
    worlds: tuple[World, ...]

    def interface(self, name: str) -> Interface:
        """The interface of that name."""
        return next(each for each in self.interfaces if each.name == name)

    def world(self, name: str) -> World:
        """The world of that name."""
        return next(each for each in self.worlds if each.name == name)
