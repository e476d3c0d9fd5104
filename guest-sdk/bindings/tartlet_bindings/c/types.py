"""Types in C: their declarations, the checks of their layout, and the functions that free what they hold."""

from __future__ import annotations

from collections.abc import Iterator

from tartlet_bindings import layout
from tartlet_bindings.c.names import Names, comment, snake, variable
from tartlet_bindings.model import (
    Alias,
    CannotBindError,
    Enum,
    Field,
    Handle,
    ListType,
    NamedType,
    OptionType,
    Primitive,
    Record,
    Resource,
    ResultType,
    Structure,
    TupleType,
    Type,
    Variant,
)


class Types:
    """Declares each type once, after those that it is made of."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._declared: set[str] = set()
        self._order: list[Type] = []

    def declare(self, kind: Type | NamedType) -> list[str]:
        """The lines of a header that declare a type and all that it is made of, but for what is declared already."""
        if isinstance(kind, Primitive):
            return []
        if isinstance(kind, Handle):
            return self.declare(kind.resource)
        name = self._names.type(kind)
        if name in self._declared:
            return []
        lines = [line for part in _made_of(kind) for line in self.declare(part)]
        self._declared.add(name)
        lines += self._declaration(kind, name)
        if isinstance(kind, Resource):
            return [*lines, f"void {name}_drop({name} {variable(kind.name)});", ""]
        self._order.append(kind)
        if _needs_freeing(kind):
            lines.append(f"void {name}_free({name} *value);")
        return [*lines, ""]

    def _declaration(self, kind: Type | NamedType, name: str) -> list[str]:
        match kind:
            case Resource():
                return [*comment(kind.docs), f"typedef struct {{ int32_t handle; }} {name};"]
            case Alias():
                return [*comment(kind.docs), f"typedef {self._names.type(kind.target)} {name};"]
            case Enum():
                return [*comment(kind.docs), *self._enum(kind), f"}} {name};"]
            case Record():
                fields = [line for field in kind.fields for line in self._field(field)]
                return [*comment(kind.docs), "typedef struct {", *fields, f"}} {name};"]
            case Variant():
                return [*comment(kind.docs), *self._variant(kind, name)]
            case ListType(element):
                return [f"typedef struct {{ {self._names.type(element)} *data; size_t length; }} {name};"]
            case OptionType(payload):
                return [f"typedef struct {{ bool is_some; {self._names.type(payload)} value; }} {name};"]
            case ResultType(ok, err):
                return [*self._result(ok, err), f"}} {name};"]
            case TupleType(parts):
                fields = [f"{self._names.type(part)} f{number};" for number, part in enumerate(parts)]
                return [f"typedef struct {{ {' '.join(fields)} }} {name};"]
        raise CannotBindError(f"C: a type without a name of the form {name}")

    def _enum(self, kind: Enum | Variant) -> Iterator[str]:
        yield f"typedef enum : uint{8 * layout.discriminant_size(kind)}_t {{"
        for case in kind.cases:
            yield from comment(case.docs, "  ")
            yield f"  {self._names.constant(kind, case.name)},"

    def _field(self, field: Field) -> list[str]:
        return [*comment(field.docs, "  "), f"  {self._names.type(field.type)} {variable(field.name)};"]

    def _variant(self, kind: Variant, name: str) -> Iterator[str]:
        yield from self._enum(kind)
        yield f"}} {name}_case;"
        yield ""
        yield "typedef struct {"
        yield f"  {name}_case which;"
        yield "  union {"
        for case in kind.cases:
            if case.payload is not None:
                yield f"    {self._names.type(case.payload)} {variable(case.name)};"
        yield "  };"
        yield f"}} {name};"

    def _result(self, ok: Type | None, err: Type | None) -> Iterator[str]:
        yield "typedef struct {"
        yield "  bool is_error;"
        yield "  union {"
        yield from (f"    {self._names.type(kind)} {part};" for part, kind in (("ok", ok), ("error", err)) if kind)
        yield "  };"

    def definitions(self) -> Iterator[str]:
        """The lines of a source file for all types declared: checks of their layout, and what frees them."""
        for kind in self._order:
            name = self._names.type(kind)
            yield from _checks(kind, name)
            if _needs_freeing(kind):
                yield ""
                yield f"void {name}_free({name} *value) {{"
                yield from self._free(layout.resolved(kind))
                yield "}"
            yield ""

    def free(self, kind: Type, value: str, indent: str) -> list[str]:
        """The statements that free what a value holds, given an expression for it."""
        if not layout.holds_memory(kind):
            return []
        return [f"{indent}{self._names.type(kind)}_free(&{value});"]

    def _free(self, kind: Structure) -> list[str]:
        match kind:
            case Record():
                lines = [self.free(field.type, f"value->{variable(field.name)}", "  ") for field in kind.fields]
            case TupleType(parts):
                lines = [self.free(part, f"value->f{number}", "  ") for number, part in enumerate(parts)]
            case OptionType(payload):
                lines = [["  if (value->is_some)", *self.free(payload, "value->value", "    ")]]
            case ListType(element):
                each = self.free(element, "value->data[i]", "    ")
                loop = ["  for (size_t i = 0; i < value->length; i++)", *each] if each else []
                lines = [loop, ["  free(value->data);", "  value->data = NULL;", "  value->length = 0;"]]
            case ResultType(ok, err):
                lines = [
                    [f"  if ({condition}value->is_error)", *freeing]
                    for condition, part, kind_of in (("!", "ok", ok), ("", "error", err))
                    if kind_of is not None and (freeing := self.free(kind_of, f"value->{part}", "    "))
                ]
            case Variant():
                lines = [
                    [f"  if (value->which == {self._names.constant(kind, case.name)})", *freeing]
                    for case in kind.cases
                    if case.payload is not None
                    and (freeing := self.free(case.payload, f"value->{variable(case.name)}", "    "))
                ]
            case _:
                raise CannotBindError(f"C: what a value of the type {kind} holds")
        return [line for some in lines for line in some]


def _made_of(kind: Type | NamedType) -> list[Type]:
    match kind:
        case Resource() | Enum() | Primitive() | Handle():
            return []
        case Alias(target=target):
            return [target]
        case ListType(element):
            return [element]
        case Record() | TupleType():
            return layout.parts(kind)
        case _:
            return [payload for payload in layout.payloads(kind) if payload is not None]


def _needs_freeing(kind: Type) -> bool:
    return not isinstance(kind, Alias) and layout.holds_memory(kind)


def _checks(kind: Type, name: str) -> Iterator[str]:
    yield f"LAYOUT({name}, {layout.size_of(kind)}, {layout.alignment_of(kind)});"
    match kind:
        case Record():
            for field, offset in zip(kind.fields, layout.offsets(kind), strict=True):
                yield f"OFFSET({name}, {variable(field.name)}, {offset});"
        case OptionType():
            yield f"OFFSET({name}, value, {layout.payload_offset(kind)});"
        case Variant():
            for case in kind.cases:
                if case.payload is not None:
                    yield f"OFFSET({name}, {snake(case.name)}, {layout.payload_offset(kind)});"
        case _:
            pass
