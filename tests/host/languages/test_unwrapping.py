"""Taking a JavaScript component out of its wrapper."""

from __future__ import annotations

import pytest
from wasmtime import wat2wasm

from tartlet.errors import BuildError
from tartlet.languages.unwrapping import unwrap
from tartlet.wasm.component_reader import read_externs

# As componentize-qjs writes it: functions that are imported are called through a table, which is filled last.
INNER = """(component
  (import "wasi:cli/environment@0.2.12" (instance $env (export "get" (func (result u32)))))
  (import "{import_name}" (instance $loader
    (export "resolve" (func (param "a" u32) (param "b" u32) (result u32)))
    (export "load" (func (param "a" u32) (result u32)))))
  (core module $main
    (import "loader" "resolve" (func $resolve (param i32 i32) (result i32)))
    (import "loader" "load" (func (param i32) (result i32)))
    (import "env" "get" (func $get (result i32)))
    (func (export "run") (result i32) (call $get))
    (func (export "resolve") (result i32) (call $resolve (i32.const 1) (i32.const 2))))
  (core module $shim
    (table (export "$imports") 3 3 funcref)
    (type $two (func (param i32 i32) (result i32)))
    (type $one (func (param i32) (result i32)))
    (type $none (func (result i32)))
    (func (export "0") (param i32 i32) (result i32)
      (call_indirect (type $two) (local.get 0) (local.get 1) (i32.const 0)))
    (func (export "1") (param i32) (result i32) (call_indirect (type $one) (local.get 0) (i32.const 1)))
    (func (export "2") (result i32) (call_indirect (type $none) (i32.const 2))))
  (core module $fixup
    (import "" "0" (func (param i32 i32) (result i32)))
    (import "" "1" (func (param i32) (result i32)))
    (import "" "2" (func (result i32)))
    (import "" "$imports" (table 3 3 funcref))
    (elem (i32.const 0) func 0 1 2))
  (core instance $shims (instantiate $shim))
  (alias core export $shims "0" (core func $resolve-shim))
  (alias core export $shims "1" (core func $load-shim))
  (alias core export $shims "2" (core func $get-shim))
  (core instance $main-instance (instantiate $main
    (with "loader" (instance (export "resolve" (func $resolve-shim)) (export "load" (func $load-shim))))
    (with "env" (instance (export "get" (func $get-shim))))))
  (alias core export $shims "$imports" (core table $table))
  (alias export $env "get" (func $get))
  (core func $lowered-get (canon lower (func $get)))
  (alias export $loader "resolve" (func $resolve))
  (core func $lowered-resolve (canon lower (func $resolve)))
  (alias export $loader "load" (func $load))
  (core func $lowered-load (canon lower (func $load)))
  (core instance (instantiate $fixup (with "" (instance
    (export "0" (func $lowered-resolve)) (export "1" (func $lowered-load)) (export "2" (func $lowered-get))
    (export "$imports" (table $table))))))
  (func (export "run") (result u32) (canon lift (core func $main-instance "run")))
  (func (export "resolve") (result u32) (canon lift (core func $main-instance "resolve"))))
"""


def wrapped(import_name: str = "local:init/module-loader") -> bytes:
    """The inner component in another one, beside a smaller one."""
    inner = INNER.format(import_name=import_name).replace("(component", "(component $inner", 1)
    return wat2wasm(f"(component (component $small) {inner})")


def test_what_is_left_imports_nothing_of_the_wrappers() -> None:
    """Its other imports and its exports are the same."""
    imports, exports = read_externs(unwrap(wrapped()))

    assert [each.name for each in imports] == ["wasi:cli/environment@0.2.12"]
    assert [each.name for each in exports] == ["run", "resolve"]


def test_it_works_without_the_wrapper() -> None:
    """Functions that are there are called; one that is left over ends the program, and nothing else."""
    import wasmtime
    from wasmtime.component import Component, Linker

    engine = wasmtime.Engine()
    component = Component(engine, unwrap(wrapped()))
    linker, store = Linker(engine), wasmtime.Store(engine)
    with linker.root() as root, root.add_instance("wasi:cli/environment@0.2.12") as instance:
        instance.add_func("get", lambda _: 7)
    instance = linker.instantiate(store, component)
    run, resolve = instance.get_func(store, "run"), instance.get_func(store, "resolve")
    assert run is not None
    assert resolve is not None

    assert run(store) == 7
    with pytest.raises(wasmtime.WasmtimeError, match="call stack exhausted"):
        resolve(store)


@pytest.mark.parametrize("component", [wat2wasm("(component)"), wrapped("local:other/thing")], ids=["empty", "other"])
def test_what_has_another_form_is_refused(component: bytes) -> None:
    """Another version of the tool may write something else: that is said, and nothing is guessed."""
    with pytest.raises(BuildError, match="is not of the expected form"):
        unwrap(component)


def test_what_is_cut_off_is_refused() -> None:
    """It is no component at all."""
    with pytest.raises(BuildError, match="is not of the expected form"):
        unwrap(wrapped()[:-100])
