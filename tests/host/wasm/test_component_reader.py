"""Reading what a component imports and exports without compiling it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wasmtime import wat2wasm

from tartlet.errors import InvalidComponentError
from tartlet.wasm.component_reader import Extern, read_externs

COMPONENT = bytes(
    wat2wasm("""(component
  (import "test:host/ops@0.1.0" (instance $ops (export "f" (func))))
  (import "log" (func $log (param "text" string)))
  (type $token' u32)
  (import "token" (type $token (eq $token')))
  (import "thing" (type $thing (sub resource)))
  (component $inner
    (core module (func) (func (drop (i32.const 1)) (drop (i32.const 2)))))
  (core module $m (func (export "f") (nop) (nop)))
  (core instance $i (instantiate $m))
  (func $run (canon lift (core func $i "f")))
  (export "run" (func $run))
  (export "again" (func $run) (func))
  (export "ops" (instance $ops))
  (export "m" (core module $m))
  (export "t" (type $token')))""")
)


def test_imports_and_exports() -> None:
    """Everything at the top level is listed by name and kind, and nothing that is inside."""
    imports, exports = read_externs(COMPONENT)

    assert imports == (
        Extern("test:host/ops@0.1.0", "interface"),
        Extern("log", "function"),
        Extern("token", "type"),
        Extern("thing", "resource"),
    )
    assert exports == (
        Extern("run", "function"),
        Extern("again", "function"),
        Extern("ops", "interface"),
        Extern("m", "core module"),
        Extern("t", "type"),
    )


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "not_a_component"),
        (b"hello", "not_a_component"),
        (b"print('hello')\n", "not_a_component"),
        (bytes(wat2wasm("(module)")), "not_a_component"),
        (b"\0asm\x0e\0\x01\0", "not_a_component"),
        (b"\0a", "truncated"),
        (b"\0asm\x0d\0", "truncated"),
    ],
)
def test_other_bytes(data: bytes, code: str) -> None:
    """What is no component is refused with the reason."""
    with pytest.raises(InvalidComponentError) as caught:
        read_externs(data)
    assert caught.value.code == code


def test_core_module_hint() -> None:
    """A core module is called one, with what to do."""
    with pytest.raises(InvalidComponentError, match="core WebAssembly module") as caught:
        read_externs(bytes(wat2wasm("(module)")))
    assert "wasm-tools component new" in caught.value.hint


@given(st.integers(1, len(COMPONENT) - 1))
def test_cut_off_anywhere(size: int) -> None:
    """A component that is cut off is refused as truncated; between two sections it is whole, with fewer items."""
    imports, exports = read_externs(COMPONENT)
    try:
        found_imports, found_exports = read_externs(COMPONENT[:size])
        outcome = (found_imports, found_exports) == (imports[: len(found_imports)], exports[: len(found_exports)])
    except InvalidComponentError as error:
        outcome = error.code == "truncated"

    assert outcome


@given(st.integers(8, len(COMPONENT) - 1), st.binary(min_size=1, max_size=8))
def test_garbage_anywhere(at: int, garbage: bytes) -> None:
    """Garbage is refused, or read as something; it raises nothing but the error for it."""
    data = COMPONENT[:at] + garbage + COMPONENT[at + len(garbage) :]
    try:
        read_externs(data)
        code = "truncated"
    except InvalidComponentError as error:
        code = error.code

    assert code in ("truncated", "not_a_component")
