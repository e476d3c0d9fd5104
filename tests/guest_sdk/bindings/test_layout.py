"""The canonical ABI, against numbers known from its text, and against wasm-tools."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tartlet_bindings import layout, reading
from tartlet_bindings.model import (
    Alias,
    Case,
    Contract,
    Enum,
    Field,
    ListType,
    OptionType,
    Primitive,
    PrimitiveName,
    Record,
    ResultType,
    TupleType,
    Type,
    Variant,
)
from tartlet_bindings.outputs import ROOT

U8, U16, U32, U64, F32, F64, TEXT = (
    Primitive(name) for name in ("u8", "u16", "u32", "u64", "f32", "f64", "string")
)  # fmt: skip
IMPORT = re.compile(
    r'\(import "(tartlet:[^"]+)" "([^"]+)" \(func \(;\d+;\) \(type \d+\)(?: \(param ([^)]*)\))?(?: \(result (\w+)\))?'
)


def enum(number: int) -> Enum:
    return Enum("e", "i", "", tuple(Case(f"c{n}", None, "") for n in range(number)))


def record(*kinds: Type) -> Record:
    return Record("r", "i", "", tuple(Field(f"f{n}", kind, "") for n, kind in enumerate(kinds)))


def variant(*kinds: Type | None) -> Variant:
    return Variant("v", "i", "", tuple(Case(f"c{n}", kind, "") for n, kind in enumerate(kinds)))


@pytest.mark.parametrize(
    ("kind", "size", "alignment", "flat"),
    [
        (Primitive("bool"), 1, 1, "i32"),
        (Primitive("char"), 4, 4, "i32"),
        (U64, 8, 8, "i64"),
        (TEXT, 8, 4, "i32 i32"),
        (ListType(U64), 8, 4, "i32 i32"),
        (enum(2), 1, 1, "i32"),
        (enum(256), 1, 1, "i32"),
        (enum(257), 2, 2, "i32"),
        (record(U8, U64, U8), 24, 8, "i32 i64 i32"),
        (record(U8, U16, U8, U32), 12, 4, "i32 i32 i32 i32"),
        (TupleType((U32, F32)), 8, 4, "i32 f32"),
        (OptionType(U8), 2, 1, "i32 i32"),
        (OptionType(U64), 16, 8, "i32 i64"),
        (OptionType(TEXT), 12, 4, "i32 i32 i32"),
        (ResultType(None, None), 1, 1, "i32"),
        (ResultType(U64, TEXT), 16, 8, "i32 i64 i32"),
        (ResultType(F32, U32), 8, 4, "i32 i32"),
        (ResultType(F64, U32), 16, 8, "i32 i64"),
        (ResultType(F32, F64), 16, 8, "i32 i64"),
        (ResultType(F32, F32), 8, 4, "i32 f32"),
        (variant(None, record(U8, U64), TEXT), 24, 8, "i32 i32 i64"),
        (Alias("a", "i", "", OptionType(U16)), 4, 2, "i32 i32"),
    ],
)  # fmt: skip
def test_types_have_their_known_layout(kind: Type, size: int, alignment: int, flat: str) -> None:
    """Size, alignment and core values are those of the specification."""
    assert layout.size_of(kind) == size
    assert layout.alignment_of(kind) == alignment
    assert layout.flatten(kind) == flat.split()


def test_offsets_are_aligned() -> None:
    """Each field begins at the next multiple of its alignment; a payload after its discriminant."""
    assert layout.offsets(record(U8, U64, U8, TEXT)) == [0, 8, 16, 20]
    assert layout.payload_offset(OptionType(U8)) == 1
    assert layout.payload_offset(ResultType(None, TEXT)) == 4
    assert layout.payload_offset(variant(None, U64)) == 8


@pytest.mark.parametrize(
    ("kind", "holds"),
    [(U64, False), (TEXT, True), (ListType(U8), True), (OptionType(record(U8, TEXT)), True), (OptionType(U8), False)],
)
def test_what_holds_memory_is_known(kind: Type, holds: bool) -> None:
    """Strings and lists have an address of their own, and so has what contains them."""
    assert layout.holds_memory(kind) is holds


def dummy_module(world: str, tmp_path: Path) -> str:
    """The text of a core module that imports and exports all of a world, made by wasm-tools."""
    module = tmp_path / "dummy.wasm"
    tool = [sys.executable, "-c", reading._WASM_TOOLS]
    embed = ["component", "embed", "--dummy-names", "legacy", str(ROOT / "wit"), "-w", world, "-o", str(module)]
    subprocess.run([*tool, *embed], check=True, capture_output=True)
    return subprocess.run([*tool, "print", str(module)], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("world", ["inferlet", "controller", "runner"])
def test_functions_are_passed_as_wasm_tools_says(contract: Contract, world: str, tmp_path: Path) -> None:
    """Every function that a world imports or exports has the core signature that wasm-tools gives it."""
    text = dummy_module(world, tmp_path)
    theirs = {
        (module, name): (tuple(parameters.split()), tuple(result.split()))
        for module, name, parameters, result in IMPORT.findall(text)
        if not name.startswith("[resource-drop]")
    }
    ours = {}
    for interface in contract.world(world).imports:
        for function in interface.functions:
            signature = layout.import_signature(function)
            ours[interface.module, function.import_name] = (signature.parameters, signature.results)

    assert ours == theirs
    for function in contract.world(world).exports:
        signature = layout.export_signature(function)
        parameters = "".join(
            f" (param{''.join(f' {core}' for core in signature.parameters)})" if signature.parameters else ""
        )
        results = "".join(f" (result {core})" for core in signature.results)
        assert re.search(rf'\(export "{function.name}" ', text)
        number = re.search(rf'\(export "{function.name}" \(func (\d+)\)\)', text)
        assert number is not None
        assert re.search(rf"\(func \(;{number[1]};\) \(type \d+\){re.escape(parameters + results)}", text)


@pytest.mark.parametrize("name", ["bool", "u8", "s16", "char", "f64"])
def test_primitives_fill_their_own_alignment(name: PrimitiveName) -> None:
    """Numbers are aligned to their size."""
    assert layout.size_of(Primitive(name)) == layout.alignment_of(Primitive(name))
