"""The engine's configuration."""

from __future__ import annotations

import pytest
from wasmtime import WasmtimeError
from wasmtime.component import Component

from tartlet.wasm.wasm_engine import WasmEngine, process_engine

# What a component could otherwise use; each needs a feature that is off.
FORBIDDEN = {
    "threads": "(module (memory 1 1 shared))",
    "memory64": "(module (memory i64 1))",
    "multi-memory": "(module (memory 1) (memory 1))",
    "tail calls": "(module (func $f (return_call $f)))",
    "relaxed SIMD": "(module (func (drop (i8x16.relaxed_swizzle (v128.const i64x2 0 0) (v128.const i64x2 0 0)))))",
    "exceptions": "(module (tag))",
    "GC": "(module (type (struct)))",
    "function references": "(module (type $t (func)) (func (param (ref $t))))",
    "wide arithmetic": (
        "(module (func (param i64) (result i64 i64)"
        " (local.get 0) (local.get 0) (local.get 0) (local.get 0) i64.add128))"
    ),
    "custom page sizes": "(module (memory 1 (pagesize 1)))",
}


@pytest.mark.parametrize("feature", FORBIDDEN)
def test_features_that_nobody_needs_are_off(wasm_engine: WasmEngine, feature: str) -> None:
    """A component that uses such a feature is refused when it is compiled."""
    core_module = FORBIDDEN[feature].replace("(module", "(core module", 1)

    with pytest.raises(WasmtimeError):
        Component(wasm_engine.engine, f"(component {core_module})")


def test_asynchronous_components_are_off(wasm_engine: WasmEngine) -> None:
    """The component model's own async is refused."""
    with pytest.raises(WasmtimeError):
        Component(wasm_engine.engine, '(component (import "f" (func async)))')


def test_features_that_compilers_use_are_on(wasm_engine: WasmEngine) -> None:
    """What ordinary compilers emit is accepted: SIMD, bulk memory, several results, sign extension."""
    Component(
        wasm_engine.engine,
        """(component (core module
          (memory 1)
          (func (result i32 i32) (i32.const 1) (i32.extend8_s (i32.const 2)))
          (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 1)))
          (func (drop (i32x4.splat (i32.const 1))))))""",
    )


def test_one_engine_per_process() -> None:
    """The process has one engine, and a fingerprint that does not change."""
    assert process_engine() is process_engine()
    assert process_engine().fingerprint == WasmEngine().fingerprint
