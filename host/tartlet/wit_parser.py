"""Parses WIT text, as far as our contract in wit/ uses the language.

Source: design/mvp/WIT.md of the component model. What is not understood is an error that names the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"(?P<doc>///[^\n]*)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<word>%?[A-Za-z][A-Za-z0-9-]*|_)"
    r"|(?P<version>@[0-9][0-9A-Za-z.+-]*)|(?P<sign>->|[{}()<>,;:=./*])|(?P<space>\s+)|(?P<bad>.)",
    re.DOTALL,
)
_GENERIC = {"list", "option", "result", "tuple", "own", "borrow"}


@dataclass(frozen=True, slots=True)
class TypeUse:
    """A type as it is written: a name, with its arguments; None stands for `_`."""

    name: str
    arguments: tuple[TypeUse | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a record (with a type), or a case of an enum, flags or a variant (with one, if it has a payload)."""

    name: str
    type: TypeUse | None
    docs: str


@dataclass(frozen=True, slots=True)
class TypeDefinition:
    """A type with a name. `form` is `alias`, `record`, `enum`, `flags`, `variant` or `resource`."""

    name: str
    form: str
    docs: str
    members: tuple[Member, ...] = ()
    target: TypeUse | None = None  # of an alias


@dataclass(frozen=True, slots=True)
class Function:
    """A function; `item_name` is its name in the component model, for example `[method]context.fill`."""

    item_name: str
    parameters: tuple[tuple[str, TypeUse], ...]
    result: TypeUse | None
    docs: str


@dataclass(slots=True)
class Interface:
    """An interface: types, functions, and types used from other interfaces (local name -> interface, name there)."""

    name: str
    docs: str
    types: dict[str, TypeDefinition] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    uses: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class World:
    """A world: interfaces imported, functions exported, worlds included, types used (local name -> interface, name)."""

    name: str
    docs: str
    imports: list[str] = field(default_factory=list)
    exports: dict[str, Function] = field(default_factory=dict)
    includes: list[str] = field(default_factory=list)
    uses: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class Package:
    """One file's share of a package."""

    name: str
    version: str
    interfaces: dict[str, Interface] = field(default_factory=dict)
    worlds: dict[str, World] = field(default_factory=dict)


def parse(text: str) -> Package:
    """Parse one WIT file. Raises `ValueError` with the line."""
    return _Parser(text).package()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int, str]] = []  # kind, text, line, docs before it
        self._at = 0
        docs: list[str] = []
        line = 1
        for match in _TOKEN.finditer(text):
            kind, token = match.lastgroup or "bad", match.group()
            if kind == "bad":
                raise ValueError(f"line {line}: unexpected {token!r}")
            if kind == "doc":
                docs.append(token[3:].removeprefix(" "))
            elif kind in ("word", "version", "sign"):
                self._tokens.append((kind, token.removeprefix("%"), line, "\n".join(docs)))
                docs = []
            line += token.count("\n")
        self._tokens.append(("end", "end of the file", line, ""))

    # ---- Tokens ----

    def _is(self, text: str) -> bool:
        return self._tokens[self._at][1] == text

    def _skip(self, text: str) -> bool:
        """Go over `text`, if it is next."""
        if self._is(text):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._skip(text):
            raise self._error(text)

    def _take(self, kind: str = "word") -> str:
        found, text, _, _ = self._tokens[self._at]
        if found != kind:
            raise self._error(f"a {kind}")
        self._at += 1
        return text

    def _docs(self) -> str:
        """The doc comment before the next token."""
        return self._tokens[self._at][3]

    def _error(self, expected: str) -> ValueError:
        _, text, line, _ = self._tokens[self._at]
        return ValueError(f"line {line}: expected {expected}, found {text!r}")

    # ---- Grammar ----

    def package(self) -> Package:
        self._expect("package")
        namespace = self._take()
        self._expect(":")
        package = Package(f"{namespace}:{self._take()}", self._take("version").removeprefix("@"))
        self._expect(";")
        while not self._is("end of the file"):
            docs = self._docs()
            if self._skip("interface"):
                interface = self._interface(docs)
                package.interfaces[interface.name] = interface
            elif self._skip("world"):
                world = self._world(docs)
                package.worlds[world.name] = world
            else:
                raise self._error("interface or world")
        return package

    def _interface(self, docs: str) -> Interface:
        interface = Interface(self._take(), docs)
        self._expect("{")
        while not self._skip("}"):
            docs = self._docs()
            word = self._take()
            if word == "use":
                self._use(interface)
            elif word == "type":
                name = self._take()
                self._expect("=")
                interface.types[name] = TypeDefinition(name, "alias", docs, target=self._type())
                self._expect(";")
            elif word in ("record", "enum", "flags", "variant"):
                name = self._take()
                interface.types[name] = TypeDefinition(name, word, docs, self._members(word))
            elif word == "resource":
                self._resource(interface, docs)
            else:
                self._expect(":")
                interface.functions[word] = self._function(word, docs)
        return interface

    def _use(self, user: Interface | World) -> None:
        source = self._take()
        self._expect(".")
        self._expect("{")
        while not self._skip("}"):
            name = self._take()
            user.uses[self._take() if self._skip("as") else name] = (source, name)
            self._skip(",")
        self._expect(";")

    def _members(self, form: str) -> tuple[Member, ...]:
        members = []
        self._expect("{")
        while not self._skip("}"):
            docs, name, ty = self._docs(), self._take(), None
            if form == "record":
                self._expect(":")
                ty = self._type()
            elif form == "variant" and self._skip("("):
                ty = self._type()
                self._expect(")")
            members.append(Member(name, ty, docs))
            if not self._is("}"):
                self._expect(",")
        return tuple(members)

    def _resource(self, interface: Interface, docs: str) -> None:
        resource = self._take()
        interface.types[resource] = TypeDefinition(resource, "resource", docs)
        if self._skip(";"):
            return
        self._expect("{")
        while not self._skip("}"):
            docs, word = self._docs(), self._take()
            if word == "constructor":
                function = Function(f"[constructor]{resource}", self._parameters(), TypeUse(resource), docs)
                self._expect(";")
            else:
                self._expect(":")
                if self._skip("static"):
                    function = self._function(f"[static]{resource}.{word}", docs)
                else:
                    self_parameter = ("self", TypeUse("borrow", (TypeUse(resource),)))
                    function = self._function(f"[method]{resource}.{word}", docs, self_parameter)
            interface.functions[function.item_name] = function

    def _function(self, item_name: str, docs: str, *first: tuple[str, TypeUse]) -> Function:
        self._expect("func")
        parameters = first + self._parameters()
        result = self._type() if self._skip("->") else None
        self._expect(";")
        return Function(item_name, parameters, result, docs)

    def _parameters(self) -> tuple[tuple[str, TypeUse], ...]:
        parameters = []
        self._expect("(")
        while not self._skip(")"):
            name = self._take()
            self._expect(":")
            parameters.append((name, self._type()))
            if not self._is(")"):
                self._expect(",")
        return tuple(parameters)

    def _type(self) -> TypeUse:
        name = self._take()
        if name not in _GENERIC or not self._skip("<"):
            return TypeUse(name)
        arguments: list[TypeUse | None] = []
        while not self._skip(">"):
            arguments.append(None if self._skip("_") else self._type())
            if not self._is(">"):
                self._expect(",")
        return TypeUse(name, tuple(arguments))

    def _world(self, docs: str) -> World:
        world = World(self._take(), docs)
        self._expect("{")
        while not self._skip("}"):
            docs, word = self._docs(), self._take()
            if word == "import":
                world.imports.append(self._take())
                self._expect(";")
            elif word == "use":
                self._use(world)
            elif word == "include":
                world.includes.append(self._take())
                self._expect(";")
            elif word == "export":
                name = self._take()
                self._expect(":")
                world.exports[name] = self._function(name, docs)
            else:
                raise self._error("import, use, export or include")
        return world
