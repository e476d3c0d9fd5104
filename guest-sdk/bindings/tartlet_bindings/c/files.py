"""The two files in C, put together."""

from __future__ import annotations

from collections.abc import Iterator

from tartlet_bindings.c.functions import Functions
from tartlet_bindings.c.names import Names
from tartlet_bindings.c.types import Types
from tartlet_bindings.model import Contract, Interface, Resource

_MADE = "Made of {package} by `make bindings`; do not edit."
_WORLDS = ("inferlet", "controller")
_WIDTH = 120

_BEGIN_HEADER = """\
#ifndef TARTLET_BINDINGS_H
#define TARTLET_BINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every function and type of the contract. tartlet.h has what makes them comfortable; include that.
 *
 * Memory. What a function returns is the program's: its strings and lists are freed with the function that is named
 * after their type, or with the run. What a function is given stays the program's; it has been read when the function
 * returns. A string that comes from the host ends with a NUL beyond its length.
 *
 * Failures. A function that can be refused has a last parameter `failure`. If it is NULL, a refusal ends the run, and
 * the run's error says what was refused and why. Otherwise it is written there, and the function returns zeros. As
 * long as a failure is written there, calls with it do nothing and return zeros, too: one look after several is enough.
 *
 * Handles are the program's until it drops them; all are dropped with the run. */

/** Text in UTF-8. */
typedef struct { char *data; size_t length; } tartlet_string;
void tartlet_string_free(tartlet_string *value);
"""
_FAILURE = """\
/** Where a refused call says why. Begin with zeros: `call` is NULL as long as none was refused. */
typedef struct {
  /** The function that was refused. */
  const char *call;
  tartlet_error error;
} tartlet_failure;
"""
_BEGIN_SOURCE = """\
#include "tartlet_bindings.h"

#include <stdlib.h>

#include "tartlet_hooks.h"

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name))) extern
#define ADDRESS(pointer) ((int32_t)(intptr_t)(pointer))
#define POINTER(address) ((void *)(intptr_t)(address))
#define LAYOUT(type, size, alignment) \\
  _Static_assert(sizeof(type) == (size) && _Alignof(type) == (alignment), "layout of " #type)
#define OFFSET(type, field, offset) _Static_assert(offsetof(type, field) == (offset), "offset of " #type "." #field)

LAYOUT(tartlet_string, 8, 4);

void tartlet_string_free(tartlet_string *value) {
  free(value->data);
  *value = (tartlet_string){0};
}
"""


def header(contract: Contract) -> str:
    """The text of `tartlet_bindings.h`."""
    return _Files(contract).header()


def source(contract: Contract) -> str:
    """The text of `tartlet_bindings.c`."""
    files = _Files(contract)
    files.header()
    return files.source()


class _Files:
    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._names = Names(contract)
        self._types = Types(self._names)
        self._functions = Functions(self._names, self._types)
        known = [contract.world(name).imports for name in _WORLDS]
        self._interfaces = [each for each in contract.interfaces if any(each in imports for imports in known)]
        self._made = _MADE.format(package=contract.package)

    def header(self) -> str:
        """Declare everything."""
        lines = [f"/* {self._made} */", *_BEGIN_HEADER.splitlines()]
        for interface in self._interfaces:
            lines += ["", *_heading(interface)]
            for kind in interface.types:
                lines += self._types.declare(kind)
                if (interface.name, kind.name) == ("types", "error"):
                    lines += [*_FAILURE.splitlines(), ""]
            for function in interface.functions:
                lines += self._functions.declaration(interface, function)
        lines += ["", "/* ---- What the program defines " + "-" * 50 + " */", ""]
        for world in _WORLDS:
            for function in self._contract.world(world).exports:
                lines += self._functions.export_types(function)
        for directive, world in zip(("#ifndef", "#ifdef"), _WORLDS, strict=True):
            lines += [f"{directive} TARTLET_CONTROLLER", f"/* The program defines these: world {world}. */", ""]
            for function in self._contract.world(world).exports:
                lines += self._functions.export_declaration(function)
            lines += ["#endif", ""]
        return _text([*lines, "#endif"])

    def source(self) -> str:
        """Define everything that the header has declared."""
        lines = [f"/* {self._made} */", *_BEGIN_SOURCE.splitlines(), "", *self._types.definitions()]
        for interface in self._interfaces:
            for kind in interface.types:
                if isinstance(kind, Resource):
                    lines += self._functions.drop(interface, kind)
            for function in interface.functions:
                lines += self._functions.definition(interface, function)
        for directive, world in zip(("#ifndef", "#ifdef"), _WORLDS, strict=True):
            lines += [f"{directive} TARTLET_CONTROLLER"]
            for function in self._contract.world(world).exports:
                lines += self._functions.export_definition(function)
            lines += ["#endif", ""]
        return _text(lines)


def _heading(interface: Interface) -> Iterator[str]:
    yield f"/* ---- {interface.name} " + "-" * (72 - len(interface.name))
    yield from (f" * {line}".rstrip() for line in interface.docs.splitlines())
    yield " */"
    yield ""


def _text(lines: list[str]) -> str:
    """The lines as a file, without empty lines that follow one another."""
    kept = [line for previous, line in zip(["", *lines], lines, strict=False) if line or previous]
    return "\n".join(part for line in kept for part in _wrapped(line)).rstrip() + "\n"


def _wrapped(line: str) -> Iterator[str]:
    """The line; if it is code and too long, broken after commas or semicolons."""
    indent = " " * (len(line) - len(line.lstrip()))
    if line.lstrip().startswith(("/", "*")):
        yield line
        return
    while len(line) > _WIDTH:
        end = max(line.rfind(mark, 0, _WIDTH) for mark in (", ", "; ")) + 1
        yield line[:end]
        line = f"{indent}    {line[end:].lstrip()}"
    yield line
