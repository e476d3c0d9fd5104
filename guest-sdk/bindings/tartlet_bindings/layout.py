"""The canonical ABI of the component model, for 32-bit memories: where values are, and how functions pass them.

A value in memory is laid out as a C struct of the same fields is, with each case's payload in a union. A value that is
passed to a function is flattened: one core value for each number, two for each string or list. What takes too many of
them is put in memory, and its address passed.

Source: https://github.com/WebAssembly/component-model/blob/main/design/mvp/CanonicalABI.md
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias

from tartlet_bindings.model import (
    Alias,
    Enum,
    Function,
    Handle,
    ListType,
    OptionType,
    Primitive,
    Record,
    ResultType,
    Structure,
    TupleType,
    Type,
    Variant,
)

CoreType: TypeAlias = Literal["i32", "i64", "f32", "f64"]
Cases: TypeAlias = Variant | Enum | OptionType | ResultType

MAX_FLAT_PARAMETERS = 16
MAX_FLAT_RESULTS = 1
POINTER_BYTES = 4

_SIZES = {
    "bool": 1, "u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f32": 4, "f64": 8,
    "char": 4, "string": 2 * POINTER_BYTES,
}  # fmt: skip


def resolved(kind: Type) -> Structure:
    """The type that stands behind its aliases."""
    return resolved(kind.target) if isinstance(kind, Alias) else kind


def parts(kind: Record | TupleType) -> list[Type]:
    """The types of what a record or tuple is made of."""
    return [field.type for field in kind.fields] if isinstance(kind, Record) else list(kind.parts)


def payloads(kind: Cases) -> list[Type | None]:
    """The payload of each case, in the order of their discriminants: an option's are nothing and something."""
    match kind:
        case OptionType(payload):
            return [None, payload]
        case ResultType(ok, err):
            return [ok, err]
        case _:
            return [case.payload for case in kind.cases]


def size_of(kind: Type) -> int:
    """Bytes that a value takes in memory, with what fills it up to its alignment."""
    match resolved(kind):
        case Primitive(name):
            return _SIZES[name]
        case ListType():
            return 2 * POINTER_BYTES
        case Handle():
            return POINTER_BYTES
        case (Record() | TupleType()) as product:
            end = 0
            for offset, part in zip(offsets(product), parts(product), strict=True):
                end = offset + size_of(part)
            return _align(end, alignment_of(product))
        case cases:
            greatest = max((size_of(payload) for payload in payloads(cases) if payload is not None), default=0)
            return _align(payload_offset(cases) + greatest, alignment_of(cases))


def alignment_of(kind: Type) -> int:
    """Bytes that the address of a value is a multiple of."""
    match resolved(kind):
        case Primitive(name):
            return POINTER_BYTES if name == "string" else _SIZES[name]
        case ListType() | Handle():
            return POINTER_BYTES
        case (Record() | TupleType()) as product:
            return max((alignment_of(part) for part in parts(product)), default=1)
        case cases:
            return max(
                [discriminant_size(cases), *(alignment_of(each) for each in payloads(cases) if each is not None)]
            )


def offsets(kind: Record | TupleType) -> list[int]:
    """Where each part of a record or tuple begins, in bytes."""
    found, end = [], 0
    for part in parts(kind):
        found.append(_align(end, alignment_of(part)))
        end = found[-1] + size_of(part)
    return found


def discriminant_size(kind: Cases) -> int:
    """Bytes of the number that says which case it is. It comes first."""
    number = len(payloads(kind))
    return 1 if number <= 1 << 8 else 2 if number <= 1 << 16 else 4


def payload_offset(kind: Cases) -> int:
    """Where the payload begins, in bytes: the same for all cases."""
    alignments = [alignment_of(payload) for payload in payloads(kind) if payload is not None]
    return _align(discriminant_size(kind), max(alignments, default=1))


def flatten(kind: Type) -> list[CoreType]:
    """The core values that a value is passed as."""
    match resolved(kind):
        case Primitive("f32"):
            return ["f32"]
        case Primitive("f64"):
            return ["f64"]
        case Primitive("u64" | "s64"):
            return ["i64"]
        case Primitive("string") | ListType():
            return ["i32", "i32"]
        case Primitive() | Handle():
            return ["i32"]
        case (Record() | TupleType()) as product:
            return [core for part in parts(product) for core in flatten(part)]
        case cases:
            return ["i32", *_joined(flatten(payload) for payload in payloads(cases) if payload is not None)]


def _joined(flattened: Iterable[list[CoreType]]) -> list[CoreType]:
    """Core values that hold the payload of any case, one beside the other: where cases differ, the wider integer."""
    columns = zip_longest(*flattened)
    return [_join({core for core in column if core is not None}) for column in columns]


def _join(cores: set[CoreType]) -> CoreType:
    if len(cores) == 1:
        return next(iter(cores))
    return "i32" if cores == {"i32", "f32"} else "i64"


@dataclass(frozen=True)
class CoreSignature:
    """How a function looks to core Wasm."""

    parameters: tuple[CoreType, ...]
    results: tuple[CoreType, ...]
    parameters_in_memory: bool
    """All parameters are in memory, laid out as a tuple of them; the first core parameter is their address."""
    result_in_memory: bool
    """The result is in memory. Of an import, the last core parameter is the address where it is to be put; of an
    export, the core result is the address where it is."""


def import_signature(function: Function) -> CoreSignature:
    """How the program calls a function of the host."""
    parameters, in_memory = _parameters(function)
    result = _result(function)
    if len(result) > MAX_FLAT_RESULTS:
        return CoreSignature((*parameters, "i32"), (), in_memory, True)
    return CoreSignature(parameters, result, in_memory, False)


def export_signature(function: Function) -> CoreSignature:
    """How the host calls a function of the program."""
    parameters, in_memory = _parameters(function)
    result = _result(function)
    if len(result) > MAX_FLAT_RESULTS:
        return CoreSignature(parameters, ("i32",), in_memory, True)
    return CoreSignature(parameters, result, in_memory, False)


def _parameters(function: Function) -> tuple[tuple[CoreType, ...], bool]:
    flat = tuple(core for _, kind in function.parameters for core in flatten(kind))
    return (("i32",), True) if len(flat) > MAX_FLAT_PARAMETERS else (flat, False)


def _result(function: Function) -> tuple[CoreType, ...]:
    return () if function.result is None else tuple(flatten(function.result))


def holds_memory(kind: Type) -> bool:
    """Whether a value has something at an address of its own: a string or a list."""
    match resolved(kind):
        case Primitive(name):
            return name == "string"
        case ListType():
            return True
        case Handle():
            return False
        case (Record() | TupleType()) as product:
            return any(holds_memory(part) for part in parts(product))
        case cases:
            return any(holds_memory(payload) for payload in payloads(cases) if payload is not None)


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
