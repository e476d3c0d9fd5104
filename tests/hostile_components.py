"""Components that are small to upload and dear to compile, or no components at all. Made here, byte by byte."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import wasmtime

COMPONENT, CORE_MODULE = b"\0asm\x0d\0\x01\0", b"\0asm\x01\0\0\0"
EMPTY_BODY = b"\x02\x00\x0b"
NO_TYPE = b"\x01\x60\x00\x00"  # one function type: nothing in, nothing out
INFERLET = """(component
  (core module $m
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16))
    (func (export "run") (param i32 i32) (result i32) (i32.const 0)))
  (core instance $i (instantiate $m))
  (func (export "run") (param "input" string) (result (result string (error string)))
    (canon lift (core func $i "run") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))
"""


def leb128(value: int) -> bytes:
    """Encode an unsigned number."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def section(kind: int, contents: bytes) -> bytes:
    """A section of a module or component."""
    return bytes([kind]) + leb128(len(contents)) + contents


def listed(kind: int, items: Iterable[bytes]) -> bytes:
    """A section of items."""
    all_items = list(items)
    return section(kind, leb128(len(all_items)) + b"".join(all_items))


def core_module(*sections: bytes) -> bytes:
    """A core module in a section of its component."""
    return section(1, CORE_MODULE + b"".join(sections))


def component(*sections: bytes) -> bytes:
    """A component of these sections alone."""
    return COMPONENT + b"".join(sections)


@functools.cache
def inferlet() -> bytes:
    """A component that this host runs."""
    return bytes(wasmtime.wat2wasm(INFERLET))


def inferlet_with(*sections: bytes) -> bytes:
    """A component that this host would run, were it not for what comes along."""
    return inferlet() + b"".join(sections)


def functions(number: int, body: bytes = EMPTY_BODY) -> bytes:
    """A core module of so many functions that are all the same."""
    declared = section(3, leb128(number) + bytes(number))
    return core_module(section(1, NO_TYPE), declared, section(10, leb128(number) + body * number))


def one_function(num_bytes: int) -> bytes:
    """A core module of one function of about so many bytes, each of which has something computed."""
    chain = b"\x41\x01" + b"\x41\x03\x6a" * ((num_bytes - 8) // 3) + b"\x1a"  # 1, +3, +3, ..., drop
    body = b"\x00" + chain + b"\x0b"
    return functions(1, leb128(len(body)) + body)


def many_calls(num_functions: int, num_calls: int) -> bytes:
    """A core module of functions that each call the first one so many times."""
    body = b"\x00" + b"\x10\x00" * num_calls + b"\x0b"
    return functions(num_functions, leb128(len(body)) + body)


def memory(pages: int) -> bytes:
    """A core module that wants so much memory from the start."""
    return core_module(listed(5, [b"\x00" + leb128(pages)]))


def table(elements: int) -> bytes:
    """A core module with a table of so many elements."""
    return core_module(listed(4, [b"\x70\x00" + leb128(elements)]))


def nested(depth: int) -> bytes:
    """Components inside components, in a section of the outermost."""
    data = component()
    for _ in range(depth - 1):
        data = component(section(4, data))
    return section(4, data)


def multiplied(levels: int, times: int) -> bytes:
    """Components that each instantiate the one inside them so many times: times ** levels instances in the end."""
    text = "(core module $m) (core instance (instantiate $m))"
    for level in range(levels):
        text = f"(component $c{level} {text}) " + f"(instance (instantiate $c{level}))" * times
    return bytes(wasmtime.wat2wasm(f"(component {text} {INFERLET.removeprefix('(component')}"))


def multiplied_by_outer(levels: int, times: int) -> bytes:
    """The same with components side by side, which know each other from outside."""
    text = "(component $c0 (core module $m) (core instance (instantiate $m)))"
    for level in range(1, levels + 1):
        calls = f"(instance (instantiate $c{level - 1}))" * times
        text += f"(component $c{level} {calls})"
    top = f"(instance (instantiate $c{levels}))"
    return bytes(wasmtime.wat2wasm(f"(component {text} {top} {INFERLET.removeprefix('(component')}"))


def doubled_types(levels: int, width: int = 10) -> bytes:
    """Tuples of tuples: the last type, written out, has width ** levels parts. A function exports it."""
    types = ["(type $t0 u32)"]
    types += [f"(type $t{n + 1} (tuple {f'$t{n} ' * width}))" for n in range(levels)]
    text = INFERLET.replace("(component", f"(component {' '.join(types)}").replace(
        '(param "input" string)', f'(param "input" (list $t{levels}))'
    )
    return bytes(wasmtime.wat2wasm(text))


def many_imports(number: int, name: str = "x") -> bytes:
    """Imports that all have one name."""
    item = b"\x00" + leb128(len(name.encode())) + name.encode() + b"\x01\x00"  # a function of the first type
    return inferlet_with(listed(7, [b"\x40\x00\x01\x00"]), section(10, leb128(number) + item * number))


def imports_named(name: str) -> bytes:
    """An import of a name that may be anything."""
    return many_imports(1, name)


def exports_named(name: str) -> bytes:
    """An export of a name that may be anything."""
    item = b"\x00" + leb128(len(name.encode())) + name.encode() + b"\x05\x00\x00"  # the first instance
    return component(section(11, leb128(1) + item))
