"""Signatures of compiled components as text."""

from __future__ import annotations

from wasmtime.component import Component

from tartlet.wasm.signatures import exported_signatures, imported_signatures
from tartlet.wasm.wasm_engine import WasmEngine
from tests.hostile_components import doubled_types

COMPONENT = """(component
  (import "test:host/things@0.1.0" (instance $things
    (export "thing" (type $thing (sub resource)))
    (type $color' (enum "red" "green")) (export "color" (type $color (eq $color')))
    (type $point' (record (field "x" u32) (field "label" (option string))))
    (export "point" (type $point (eq $point')))
    (type $shape' (variant (case "dot" $point) (case "none"))) (export "shape" (type $shape (eq $shape')))
    (type $perms' (flags "read" "write")) (export "perms" (type $perms (eq $perms')))
    (export "[static]thing.open" (func (param "color" $color) (result (result (own $thing) (error $shape)))))
    (export "[method]thing.paint" (func (param "self" (borrow $thing)) (param "at" (list $point))))
    (export "plain" (func (param "a" (tuple bool s8 u64 f32 f64 char)) (param "p" $perms) (result (result))))))
  (alias export $things "thing" (type $thing))
  (import "test:host/users@0.1.0" (instance
    (alias outer 1 $thing (type $thing'))
    (export "thing" (type $thing (eq $thing')))
    (export "use" (func (param "thing" (borrow $thing)) (result (result (error string)))))))
  (core module $m (func (export "f") (param i32)))
  (core instance $i (instantiate $m))
  (func (export "run") (param "n" u32) (canon lift (core func $i "f"))))"""


def test_signatures(wasm_engine: WasmEngine) -> None:
    """Types are written out; a resource keeps the name of the interface that defines it wherever it is used."""
    component = Component(wasm_engine.engine, COMPONENT)
    point = "record{x: u32, label: option<string>}"

    assert imported_signatures(wasm_engine, component) == {
        "test:host/things@0.1.0": {
            "[static]thing.open": (
                f"func(color: enum{{red, green}}) -> result<own<things.thing>, variant{{dot({point}), none}}>"
            ),
            "[method]thing.paint": f"func(self: borrow<things.thing>, at: list<{point}>)",
            "plain": ("func(a: tuple<bool, s8, u64, f32, f64, char>, p: flags{read, write}) -> result<_, _>"),
        },
        "test:host/users@0.1.0": {"use": "func(thing: borrow<things.thing>) -> result<_, string>"},
    }
    assert exported_signatures(wasm_engine, component, ["run", "other"]) == {"run": "func(n: u32)"}


def test_types_that_would_fill_gigabytes(wasm_engine: WasmEngine) -> None:
    """They are not written out."""
    component = Component(wasm_engine.engine, doubled_types(5))

    assert exported_signatures(wasm_engine, component, ["run"]) == {"run": "(types of more than 10,000 characters)"}
