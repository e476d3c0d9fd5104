"""Functions of the host: each lowers its arguments, calls the import, and lifts the result."""

from __future__ import annotations

from dataclasses import dataclass, field

from tartlet_bindings.layout import (
    flatten,
    import_signature,
    offsets,
    resolved,
    size_of,
)
from tartlet_bindings.model import (
    CannotBindError,
    Enum,
    Function,
    Handle,
    ListType,
    OptionType,
    Primitive,
    Record,
    TupleType,
    Type,
)
from tartlet_bindings.rust.names import CORE_TYPES, comment, owned, parameter, snake

WIDTH = 120


@dataclass
class _Lowering:
    """The statements before a call that make core values of its arguments."""

    statements: list[str] = field(default_factory=list)
    num_names: int = 0

    def name(self, what: str) -> str:
        """A name that is not taken."""
        self.num_names += 1
        return f"{what}{self.num_names}"

    def flat(self, kind: Type, place: str, statements: list[str], *, is_reference: bool) -> list[str]:
        """Expressions for the core values of what is at `place`; what they need first is added to the statements."""
        value = f"*{place}" if is_reference else place
        match resolved(kind):
            case Primitive("string"):
                return [f"{place}.as_ptr() as u32", f"{place}.len() as u32"]
            case Primitive("bool") | Enum():
                return [f"{value} as u32"]
            case Primitive():
                return [value]
            case Handle():
                return [f"{place}.handle()"]
            case ListType(element):
                items = self.name("list")
                spelled = f"<{owned(element)}>" if isinstance(element, TupleType) else owned(element)
                lent = place if "." not in place else f"&{place}"
                statements.append(f"let {items} = {spelled}::list({lent}, &mut arena);")
                return [f"{items} as u32", f"{place}.len() as u32"]
            case Record(fields=fields):
                places = [(each.type, f"{place}.{snake(each.name)}") for each in fields]
                return [core for part, at in places for core in self.flat(part, at, statements, is_reference=False)]
            case OptionType(payload):
                return self._option(payload, place, statements)
        raise CannotBindError(f"Rust: a parameter of the type {kind}")

    def _option(self, payload: Type, place: str, statements: list[str]) -> list[str]:
        inner: list[str] = []
        some = f"({', '.join(['1', *self.flat(payload, 'value', inner, is_reference=True)])})"
        cores = ["i32", *flatten(payload)]
        none = f"({', '.join('0.0' if core in ('f32', 'f64') else '0' for core in cores)})"
        names = [self.name("flat") for _ in cores]
        statements.append(f"let ({', '.join(names)}) = match &{place} {{")
        if inner:
            statements += ["    Some(value) => {", *(f"        {each}" for each in inner), f"        {some}", "    }"]
        else:
            statements.append(f"    Some(value) => {some},")
        statements += [f"    None => {none},", "};"]
        return names


def function(each: Function, module: str) -> list[str]:
    """The lines of a function of the interface that components import as `module`."""
    signature = import_signature(each)
    lowering, result = _Lowering(), each.result
    if signature.parameters_in_memory:
        arguments = ["arguments as u32"]
        _store_parameters(each, lowering.statements)
    else:
        arguments = [
            core
            for name, kind in each.parameters
            for core in lowering.flat(kind, snake(name), lowering.statements, is_reference=False)
        ]
    if any("arena" in statement for statement in lowering.statements):
        lowering.statements.insert(0, "let mut arena = Arena::default();")
    core = [f"_: {CORE_TYPES[kind]}" for kind in signature.parameters]
    core_result = "".join(f" -> {CORE_TYPES[kind]}" for kind in signature.results)
    if signature.result_in_memory:
        assert result is not None
        lowering.statements.append(f"let mut result = Area([0; {-(-size_of(result) // 8)}]);")
        arguments.append("result.at() as u32")
    call = f"call({', '.join(arguments)})"
    return [
        *comment(each.docs),
        *_head(each),
        f'    #[link(wasm_import_module = "{module}")]',
        '    extern "C" {',
        f'        #[link_name = "{each.import_name}"]',
        f"        fn call({', '.join(core)}){core_result};",
        "    }",
        *(f"    {statement}" for statement in lowering.statements),
        "    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.",
        *(f"    {line}" for line in _call(call, result, in_memory=signature.result_in_memory)),
        "}",
    ]


def _head(each: Function) -> list[str]:
    """The line, or lines, that begin a function."""
    parameters = ["&self" if name == "self" else f"{snake(name)}: {parameter(kind)}" for name, kind in each.parameters]
    result = "" if each.result is None else f" -> {owned(each.result)}"
    line = f"pub fn {snake(each.name)}({', '.join(parameters)}){result} {{"
    if len(line) + 4 <= WIDTH:
        return [line]
    return [f"pub fn {snake(each.name)}(", *(f"    {each}," for each in parameters), f"){result} {{"]


def _store_parameters(each: Function, statements: list[str]) -> None:
    """Put the parameters into memory, as a tuple of them."""
    kinds = TupleType(tuple(kind for _, kind in each.parameters))
    statements.append(f"let arguments = arena.take({size_of(kinds)});")
    statements += ["// SAFETY: the arena has given room for them, at these offsets.", "unsafe {"]
    for (name, kind), offset in zip(each.parameters, offsets(kinds), strict=True):
        value = f"{snake(name)}.handle()" if isinstance(resolved(kind), Handle) else snake(name)
        statements.append(f"    {value}.store({at('arguments', offset)}, &mut arena);")
    statements.append("}")


def _call(call: str, result: Type | None, *, in_memory: bool) -> list[str]:
    """The call, and what is made of its result."""
    if in_memory:
        return ["unsafe {", *_broken(f"    {call};"), "    Load::load(result.at())", "}"]
    if result is not None and resolved(result) == Primitive("bool"):
        return [f"unsafe {{ {call} != 0 }}"]
    return [f"unsafe {{ {call} }}"]


def _broken(line: str) -> list[str]:
    """A call as one line, or as two if it is long."""
    if len(line) + 8 <= WIDTH:
        return [line]
    head, _, arguments = line.partition("(")
    return [f"{head}(", f"        {arguments.removesuffix(');')},", "    );"]


def at(begin: str, offset: int) -> str:
    """An address so many bytes after another."""
    return f"{begin}.add({offset})" if offset else begin
