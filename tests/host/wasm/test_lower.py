"""Lowering: wrong values are refused by name, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from wasmtime.component import Component

from tartlet.wasm.host_function import Err
from tartlet.wasm.library import ffi, lib
from tartlet.wasm.lower import Lower, LoweringError, lowerer
from tartlet.wasm.wasm_engine import WasmEngine

TYPES = """(component
  (type $color' (enum "red" "green"))
  (import "color" (type $color (eq $color')))
  (type $perms' (flags "read" "write"))
  (import "perms" (type $perms (eq $perms')))
  (type $point' (record (field "x" u32) (field "label" string)))
  (import "point" (type $point (eq $point')))
  (type $shape' (variant (case "dot" $point) (case "none")))
  (import "shape" (type $shape (eq $shape')))
  (import "f" (func
    (param "bool" bool) (param "u8" u8) (param "s8" s8) (param "u32" u32) (param "s64" s64) (param "f32" f32)
    (param "f64" f64) (param "char" char) (param "string" string) (param "bytes" (list u8))
    (param "numbers" (list u16)) (param "singles" (list f32)) (param "texts" (list string))
    (param "pair" (tuple u32 string)) (param "option" (option string))
    (param "result" (result u32 (error string))) (param "empty-result" (result))
    (param "color" $color) (param "perms" $perms) (param "point" $point) (param "shape" $shape)
    (param "points" (list $point)))))"""


@pytest.fixture(scope="module")
def lowers() -> dict[str, Lower]:
    """A lower closure for each kind of type."""
    engine = WasmEngine()
    component = Component(engine.engine, TYPES)
    function_type = component.type.imports(engine.engine)["f"].ty
    return {name: lowerer(ty, lambda _ty: 1) for name, ty in function_type.params}  # type: ignore[union-attr]


@pytest.fixture
def words() -> Iterator[Any]:
    """Room for one value, which is freed: what was written must be a whole value, whatever happened."""
    words = ffi.new("uint64_t[4]")
    yield words
    lib.wasmtime_component_val_delete(words)


WRONG = [
    ("bool", 1, "expected bool, got int 1"),
    ("u8", 256, "expected u8, got int 256"),
    ("u8", -1, "expected u8, got int -1"),
    ("u8", True, "expected u8, got bool True"),
    ("u8", 1.0, "expected u8, got float 1.0"),
    ("s8", 128, "expected s8, got int 128"),
    ("s8", -129, "expected s8, got int -129"),
    ("u32", 1 << 32, "expected u32, got int 4294967296"),
    ("u32", "1", "expected u32, got str '1'"),
    ("u32", None, "expected u32, got NoneType None"),
    ("s64", 1 << 63, "expected s64, got int 9223372036854775808"),
    ("f32", "1", "expected f32, got str '1'"),
    ("f64", 10**400, "expected f64, got int 1000"),
    ("f64", True, "expected f64, got bool True"),
    ("char", "ab", "expected char, one Unicode scalar value, got str 'ab'"),
    ("char", "", "expected char, one Unicode scalar value, got str ''"),
    ("char", "\ud800", "expected char, one Unicode scalar value, got str"),
    ("string", b"bytes", "expected string, got bytes b'bytes'"),
    ("string", "a\udfff", "expected string of Unicode scalar values, got str"),
    ("bytes", "text", "expected list<u8> as bytes, got str 'text'"),
    ("bytes", [1], "expected list<u8> as bytes, got list [1]"),
    ("numbers", [1, 70000], "expected list<u16> (.*), got list [1, 70000]"),
    ("numbers", ["1"], "expected list<u16>"),
    ("numbers", {1}, "expected list<u16>, got set {1}"),
    ("singles", [1.5, None], "expected list<f32>"),
    ("texts", "abc", "expected list, got str 'abc'"),
    ("texts", ["a", "b", 3], r"[2]: expected string, got int 3"),
    ("pair", (1,), "expected tuple of 2, got tuple (1,)"),
    ("pair", (1, 2), r"[1]: expected string, got int 2"),
    ("option", 5, "expected string, got int 5"),
    ("result", "text", "ok: expected u32, got str 'text'"),
    ("result", Err(5), "err: expected string, got int 5"),
    ("empty-result", 5, "ok: expected no payload, got int 5"),
    ("empty-result", Err(5), "err: expected no payload, got int 5"),
    ("color", "blue", "expected enum, one of red, green, got str 'blue'"),
    ("color", 0, "expected enum, one of red, green, got int 0"),
    ("perms", {"execute"}, "expected set of flags among read, write, got set {'execute'}"),
    ("perms", "read", "expected set of flags among read, write, got str 'read'"),
    ("point", {"x": 1}, "expected record with the fields x, label, got dict {'x': 1}"),
    ("point", {"x": 1, "label": "a", "y": 2}, "expected record with the fields x, label, got dict"),
    ("point", {"x": 1, "label": 2}, "label: expected string, got int 2"),
    ("point", (1, "a"), "expected record with the fields x, label, got tuple"),
    ("shape", ("square", None), r"expected (case, payload) with a case of dot, none, got tuple"),
    ("shape", "none", r"expected (case, payload) with a case of dot, none, got str 'none'"),
    ("shape", (["none"], None), r"expected (case, payload) with a case of dot, none, got tuple"),
    ("shape", ("none", 5), "none: expected no payload, got int 5"),
    ("shape", ("dot", {"x": "1", "label": "a"}), "dot.x: expected u32, got str '1'"),
    ("points", [{"x": 1, "label": "a"}, {"x": 1, "label": b"b"}], r"[1].label: expected string, got bytes b'b'"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_wrong_values(lowers: dict[str, Lower], words: Any, name: str, value: Any, message: str) -> None:
    """A wrong value raises an error that says where it is, what was expected, and what it is."""
    with pytest.raises(LoweringError) as caught:
        lowers[name](words, 0, value, 0)

    start, _, end = message.partition("(.*)")
    assert str(caught.value).startswith(start)
    assert end in str(caught.value)


def test_failures_leak_nothing(lowers: dict[str, Lower]) -> None:
    """What was written before the wrong part is freed with the value that holds it."""
    text = "x" * 100_000
    wrong: list[tuple[str, Any]] = [
        ("texts", [text, text, 5]),
        ("points", [{"x": 1, "label": text}, {"x": 1, "label": 5}]),
        ("pair", (1, 5)),
        ("result", Err(5)),
        ("shape", ("dot", {"x": 1, "label": 5})),
    ]
    process = psutil.Process()
    before = process.memory_info().rss
    for _ in range(500):
        for name, value in wrong:
            words = ffi.new("uint64_t[4]")
            with pytest.raises(LoweringError):
                lowers[name](words, 0, value, 0)
            lib.wasmtime_component_val_delete(words)

    assert process.memory_info().rss - before < 30 << 20  # 150 MB have been written


def test_types_without_python_form() -> None:
    """A type that the component model has and we do not is refused when the closure is made."""

    class StreamType:
        pass

    with pytest.raises(TypeError, match="values of type StreamType cannot be lowered"):
        lowerer(StreamType(), lambda _ty: 1)
