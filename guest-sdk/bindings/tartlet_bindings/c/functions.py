"""Functions in C: those of the host that a program calls, and those of the program that the host calls."""

from __future__ import annotations

from collections.abc import Iterator

from tartlet_bindings import layout
from tartlet_bindings.c.names import Names, comment, snake, variable
from tartlet_bindings.c.types import Types
from tartlet_bindings.model import (
    CannotBindError,
    Enum,
    Function,
    Handle,
    Interface,
    ListType,
    OptionType,
    Primitive,
    Record,
    Resource,
    ResultType,
    TupleType,
    Type,
    Variant,
)

_CORE = {"i32": "int32_t", "i64": "int64_t", "f32": "float", "f64": "double"}


class Functions:
    """Declares and defines functions."""

    def __init__(self, names: Names, types: Types) -> None:
        self._names = names
        self._types = types

    def declaration(self, interface: Interface, function: Function) -> list[str]:
        """The lines of a header that declare a function of the host, and the types that it has to do with."""
        lines = [line for _, kind in function.parameters for line in self._types.declare(kind)]
        returned, _ = _returned_and_error(function)
        if returned is not None:
            lines += self._types.declare(returned)
        return [*lines, *comment(function.docs), f"{self._head(interface, function)};", ""]

    def _head(self, interface: Interface, function: Function) -> str:
        returned, error = _returned_and_error(function)
        parameters = [self._parameter(name, kind) for name, kind in function.parameters]
        if error is not None:
            parameters.append("tartlet_failure *failure")
        result = "void" if returned is None else self._names.type(returned)
        return f"{result} {self._names.function(interface, function)}({', '.join(parameters) or 'void'})"

    def _parameter(self, name: str, kind: Type) -> str:
        if isinstance(kind, Record):
            return f"const {self._names.type(kind)} *{variable(name)}"
        return f"{self._names.type(kind)} {variable(name)}"

    def definition(self, interface: Interface, function: Function) -> Iterator[str]:
        """The lines of a source file that import a function, and define the one that calls it."""
        name = self._names.function(interface, function)
        imported = f"import_{name.removeprefix('tartlet_')}"
        signature = layout.import_signature(function)
        result = _CORE[signature.results[0]] if signature.results else "void"
        parameters = ", ".join(_CORE[core] for core in signature.parameters) or "void"
        yield f'IMPORT("{interface.module}", "{function.import_name}")'
        yield f"{result} {imported}({parameters});"
        yield ""
        yield f"{self._head(interface, function)} {{"
        returned, error = _returned_and_error(function)
        if error is not None:
            nothing = "" if returned is None else f" ({self._names.type(returned)}){{0}}"
            yield f"  if (failure && failure->call) return{nothing};"
        arguments = [flat for parameter, kind in function.parameters for flat in _flat_parameter(parameter, kind)]
        if signature.parameters_in_memory:
            yield from self._arguments_in_memory(function)
            arguments = ["ADDRESS(&arguments)"]
        yield from self._call(function, name, imported, arguments, signature.result_in_memory)
        yield "}"
        yield ""

    def _arguments_in_memory(self, function: Function) -> Iterator[str]:
        fields = [f"{self._names.type(kind)} {variable(name)};" for name, kind in function.parameters]
        values = [f"{'*' if isinstance(kind, Record) else ''}{variable(name)}" for name, kind in function.parameters]
        yield "  struct {"
        yield from (f"    {field}" for field in fields)
        yield f"  }} arguments = {{{', '.join(values)}}};"

    def _call(
        self, function: Function, name: str, imported: str, arguments: list[str], in_memory: bool
    ) -> Iterator[str]:
        returned, error = _returned_and_error(function)
        if not in_memory:
            call = f"{imported}({', '.join(arguments)})"
            yield f"  {call};" if returned is None else f"  return {self._lifted(returned, call)};"
            return
        call = f"{imported}({', '.join([*arguments, 'ADDRESS(&returned)'])})"
        if error is None:
            assert returned is not None
            yield f"  {self._names.type(returned)} returned;"
            yield f"  {call};"
            yield "  return returned;"
            return
        ok = "" if returned is None else f"{self._names.type(returned)} ok; "
        yield f"  struct {{ bool is_error; union {{ {ok}{self._names.type(error)} error; }}; }} returned;"
        yield f"  {call};"
        yield f'  if (returned.is_error) tartlet_refused("{name}", &returned.error, failure);'
        if returned is not None:
            yield f"  return returned.is_error ? ({self._names.type(returned)}){{0}} : returned.ok;"

    def _lifted(self, kind: Type, flat: str) -> str:
        """The value of a type that is passed as one core value."""
        if isinstance(layout.resolved(kind), Handle):
            return f"({self._names.type(kind)}){{{flat}}}"
        return f"({self._names.type(kind)}){flat}"

    def drop(self, interface: Interface, resource: Resource) -> Iterator[str]:
        """The lines of a source file that import and define what drops a handle."""
        name = self._names.type(resource)
        yield f'IMPORT("{interface.module}", "[resource-drop]{resource.name}")'
        yield f"void import_{snake(resource.name)}_drop(int32_t);"
        yield ""
        yield f"void {name}_drop({name} {variable(resource.name)}) {{"
        yield f"  import_{snake(resource.name)}_drop({variable(resource.name)}.handle);"
        yield "}"
        yield ""

    def export_types(self, function: Function) -> list[str]:
        """The lines of a header that declare the types of a function which the program defines."""
        kinds = [kind for _, kind in function.parameters] + ([function.result] if function.result else [])
        return [line for kind in kinds for line in self._types.declare(kind)]

    def export_declaration(self, function: Function) -> list[str]:
        """The lines of a header that declare such a function."""
        parameters = ", ".join(f"{self._names.type(kind)} {variable(name)}" for name, kind in function.parameters)
        assert function.result is not None
        head = f"{self._names.type(function.result)} {snake(function.name)}({parameters or 'void'})"
        return [*comment(function.docs), f"{head};", ""]

    def export_definition(self, function: Function) -> Iterator[str]:
        """The lines of a source file that export a function, which calls the program's."""
        signature = layout.export_signature(function)
        assert function.result is not None
        assert signature.result_in_memory
        assert not signature.parameters_in_memory
        name, parameters = snake(function.name), [(variable(name), kind) for name, kind in function.parameters]
        cores = [f"int32_t {each}_{part}" for each, _ in parameters for part in ("data", "length")]
        assert len(cores) == len(signature.parameters), "the parameters are strings and lists"
        yield f'__attribute__((export_name("{function.name}")))'
        yield f"const void *exported_{name}({', '.join(cores) or 'void'}) {{"
        yield f"  static {self._names.type(function.result)} returned;"
        for each, kind in parameters:
            yield f"  static {self._names.type(kind)} {each};"
        yield "  tartlet_begin_call();"
        for each, kind in parameters:
            yield from self._types.free(kind, each, "  ")
            yield f"  {each} = ({self._names.type(kind)}){{POINTER({each}_data), (size_t){each}_length}};"
        yield f"  returned = {name}({', '.join(each for each, _ in parameters)});"
        yield "  tartlet_end_call();"
        yield "  return &returned;"
        yield "}"
        yield ""


def _returned_and_error(function: Function) -> tuple[Type | None, Type | None]:
    """What the C function returns, and the error that it may have instead."""
    if isinstance(function.result, ResultType):
        return function.result.ok, function.result.err
    return function.result, None


def _flat_parameter(name: str, kind: Type) -> list[str]:
    return _flat(kind, variable(name), "->" if isinstance(kind, Record) else ".")


def _flat(kind: Type, value: str, access: str = ".") -> list[str]:
    """The core values that a C value is passed as, as expressions."""
    match layout.resolved(kind):
        case Primitive("string") | ListType():
            return [f"ADDRESS({value}.data)", f"(int32_t){value}.length"]
        case Handle():
            return [f"{value}.handle"]
        case Primitive() | Enum():
            (core,) = layout.flatten(kind)
            return [f"({_CORE[core]}){value}"]
        case Record(fields=fields):
            return [flat for each in fields for flat in _flat(each.type, f"{value}{access}{variable(each.name)}")]
        case TupleType(parts):
            return [flat for number, part in enumerate(parts) for flat in _flat(part, f"{value}.f{number}")]
        case OptionType(payload):
            return [f"(int32_t){value}.is_some", *_flat(payload, f"{value}.value")]
        case Variant() | ResultType():
            raise CannotBindError(f"C: an argument of the type {kind}, for a function of the host")
