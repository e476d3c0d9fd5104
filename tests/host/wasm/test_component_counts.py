"""Counting what is in a component before anything is compiled."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wasmtime import wat2wasm

from tartlet.component_limits import EMBEDDED, ComponentCounts, ComponentLimits
from tartlet.errors import InvalidComponentError
from tartlet.wasm.component_counts import count_component
from tests import hostile_components as hostile

UPLOADED = ComponentLimits()
TEXT = """(component
  (import "test:host/ops@0.1.0" (instance $ops (export "f" (func))))
  (import "thing" (type $thing (sub resource)))
  (type $token u32)
  (alias export $ops "f" (func $f))
  (core func $lowered (canon lower (func $f)))
  (component $inner
    (core module (memory 3 9) (func) (func (drop (i32.const 1)) (drop (i32.const 2)))))
  (core module $m
    (type (func)) (import "x" "y" (func)) (table 7 20 funcref) (memory (export "mem") 2) (global i32 (i32.const 1))
    (global i32 (i32.const 1)) (elem (i32.const 0) func 0) (data (i32.const 1) "abc") (data "d")
    (func (export "f") (nop) (nop)))
  (core instance $x (export "y" (func $lowered)))
  (core instance $i (instantiate $m (with "x" (instance $x))))
  (instance (instantiate $inner))
  (instance (instantiate $inner))
  (func $run (canon lift (core func $i "f")))
  (export "run" (func $run))
  (@custom "note" "text"))"""
COMPONENT = bytes(wat2wasm(TEXT))


def test_everything_is_counted() -> None:
    """Through nested components and core modules; sizes of definitions, and where the core modules are, too."""
    counts, modules = count_component(COMPONENT, UPLOADED)

    assert replace(counts, sections=0, definition_bytes=0, custom_sections=0) == ComponentCounts(
        size_bytes=len(COMPONENT),
        nesting=1,
        core_modules=2,
        instances=4,
        aliases=2,
        lowerings=2,
        types=5,
        imports=3,
        exports=3,
        functions=3,
        function_bytes=8,
        code_bytes=4 + 2 + 8,
        memories=2,
        initial_memory_bytes=5 * 65_536,
        tables=1,
        table_elements=7,
        element_segments=1,
        globals=2,
        data_segments=2,
    )
    assert counts.custom_sections >= 1
    assert 20 < counts.sections < 40
    assert 50 < counts.definition_bytes < len(COMPONENT)
    assert [COMPONENT[module.start : module.start + 8] for module in modules] == [hostile.CORE_MODULE] * 2


@pytest.mark.parametrize(
    "name", [name for name, used in asdict(count_component(COMPONENT, UPLOADED)[0]).items() if used]
)
def test_each_limit_holds(name: str) -> None:
    """What has exactly as much as is allowed passes; with one less it is refused, with both numbers."""
    counts, _ = count_component(COMPONENT, UPLOADED)
    used = getattr(counts, name)
    assert count_component(COMPONENT, replace(UPLOADED, **{f"max_{name}": used}))[0] == counts

    with pytest.raises(InvalidComponentError, match=f"allowed are {used - 1:,}"):
        count_component(COMPONENT, replace(UPLOADED, **{f"max_{name}": used - 1}))


BOMBS = {
    "262,144 functions in a megabyte": (hostile.inferlet_with(hostile.functions(262_144)), "too_many_functions"),
    "a million functions": (hostile.inferlet_with(hostile.functions(999_999)), "too_many_functions"),
    "one function of 7 MB": (hostile.inferlet_with(hostile.one_function(7_000_000)), "function_too_large"),
    "many calls": (hostile.inferlet_with(*[hostile.many_calls(1000, 3500)] * 2), "too_much_code"),
    "functions in many modules": (hostile.inferlet_with(*[hostile.functions(900)] * 90), "too_many_functions"),
    "many modules": (hostile.inferlet_with(*[hostile.core_module()] * 10_000), "too_many_core_modules"),
    "memory of 4 GiB": (hostile.inferlet_with(hostile.memory(65_536)), "too_much_memory"),
    "many memories": (hostile.inferlet_with(*[hostile.memory(0)] * 17), "too_many_memories"),
    "a huge table": (hostile.inferlet_with(hostile.table(10**9)), "too_many_table_elements"),
    "nested a hundred deep": (hostile.inferlet_with(hostile.nested(100)), "nested_too_deep"),
    "nested 2,000 deep": (hostile.inferlet_with(hostile.nested(2000)), "nested_too_deep"),
    "a thousand million instances": (hostile.multiplied(9, 10), "too_many_instances"),
    "the same from outside": (hostile.multiplied_by_outer(9, 10), "too_many_instances"),
    "a million imports": (hostile.many_imports(1_000_000), "too_many_definitions"),
    "many imports": (hostile.many_imports(50_000), "too_many_imports"),
    "empty sections": (hostile.inferlet_with(hostile.section(0, b"\0") * 5_000_000), "too_many_sections"),
    "20 MB of nothing": (hostile.inferlet_with(hostile.section(0, bytes(20_000_000))), "component_too_large"),
    "garbage behind": (hostile.inferlet_with(b"\xee\x01garbage"), "not_a_component"),
    "a section that never ends": (hostile.inferlet_with(b"\x0b\xff\xff\xff\xff\x0f"), "truncated"),
    "code of no function": (
        hostile.inferlet_with(hostile.core_module(hostile.listed(10, [hostile.EMPTY_BODY]))),
        "not_a_component",
    ),
    "huge count": (hostile.inferlet_with(hostile.section(7, b"\xff\xff\xff\xff\x0f")), "not_a_component"),
    "huge count in a module": (
        hostile.inferlet_with(hostile.core_module(hostile.section(3, b"\xff\xff\xff\xff\x0f\0"))),
        "not_a_component",
    ),
    "a size that never ends": (
        hostile.inferlet_with(
            hostile.core_module(hostile.listed(3, [b"\0"]), hostile.section(10, b"\x01" + b"\xff" * 5_000_000))
        ),
        "not_a_component",
    ),
    "a number that never ends": (hostile.inferlet_with(b"\x0b" + b"\x80" * 5_000_000), "not_a_component"),
    "a core module": (bytes(wat2wasm("(module)")), "not_a_component"),
    "no WebAssembly": (b"import os\n", "not_a_component"),
    "a module that is none": (hostile.inferlet_with(hostile.section(1, b"\0asm\x02\0\0\0")), "not_a_component"),
    "shared memory": (hostile.inferlet_with(hostile.core_module(hostile.listed(5, [b"\3\1\1"]))), "not_a_component"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_made_to_be_dear_is_refused(name: str) -> None:
    """By the code that tells what there is too much of, without going through it."""
    data, code = BOMBS[name]

    with pytest.raises(InvalidComponentError) as caught:
        count_component(data, UPLOADED)
    assert caught.value.code == code
    assert len(str(caught.value)) < 1000


def test_a_host_s_own_user_is_kept_from_the_worst() -> None:
    """A million functions would take five gigabytes to compile; a thousand million instances, for ever."""
    with pytest.raises(InvalidComponentError, match="999,999 functions"):
        count_component(hostile.component(hostile.functions(999_999)), EMBEDDED)
    with pytest.raises(InvalidComponentError, match="instances"):
        count_component(hostile.multiplied(9, 10), EMBEDDED)


def test_cut_off_anywhere() -> None:
    """It is refused as truncated, or counts for what is left if it was cut between two sections."""
    whole, _ = count_component(COMPONENT, UPLOADED)
    codes = set()
    for size in range(len(COMPONENT)):
        try:
            counts, _ = count_component(COMPONENT[:size], UPLOADED)
            assert all(used <= getattr(whole, name) for name, used in asdict(counts).items())
        except InvalidComponentError as error:
            codes.add(error.code)

    assert codes == {"truncated", "not_a_component"}  # the latter of no bytes at all


@given(st.binary(max_size=200))
def test_random_bytes(garbage: bytes) -> None:
    """Whatever comes, it is counted or refused, and raises nothing else."""
    for data in (garbage, hostile.component(garbage), hostile.component(hostile.core_module(garbage))):
        _count_or_refuse(data)


@given(st.lists(st.tuples(st.integers(0, len(COMPONENT) - 1), st.binary(max_size=6), st.integers(0, 6)), max_size=5))
def test_valid_components_with_other_bytes_in_them(edits: list[tuple[int, bytes, int]]) -> None:
    """Bytes replaced, put in and left out."""
    data = COMPONENT
    for at, put_in, left_out in edits:
        data = data[:at] + put_in + data[at + left_out :]
    _count_or_refuse(data)


@given(
    st.sampled_from(range(14)),
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.binary(max_size=30),
    st.booleans(),
)
def test_huge_counts_with_little_data(kind: int, count: int, num_bytes: int, rest: bytes, in_module: bool) -> None:
    """Numbers that promise more than there is, written long or short, cost nothing."""
    number = hostile.leb128(count)
    padding = max(0, num_bytes - len(number))
    if padding:
        number = number[:-1] + bytes([number[-1] | 0x80]) + b"\x80" * (padding - 1) + b"\0"
    part = hostile.section(kind, number + rest)
    _count_or_refuse(hostile.component(hostile.core_module(part) if in_module else part))


def _count_or_refuse(data: bytes) -> None:
    for limits in (UPLOADED, EMBEDDED):
        refusal = None
        try:
            counts, modules = count_component(data, limits)
            assert counts.size_bytes == len(data)
            assert len(modules) == counts.core_modules
        except InvalidComponentError as error:
            refusal = error
        assert len(str(refusal)) < 1000


COMPOSED = """(component
  (component $inner
    (core module $m (memory (export "memory") 1)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16))
      (func (export "f") (param i32 i32)))
    (core instance $i (instantiate $m))
    (func (export "f") (param "x" string)
      (canon lift (core func $i "f") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))
  (component $outer
    (import "f" (func $f (param "x" string)))
    (core module $lib (memory (export "memory") 1)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16)))
    (core instance $l (instantiate $lib))
    (core func $lowered (canon lower (func $f) (memory (core memory $l "memory")) (realloc (core func $l "realloc"))))
    (core module $m (import "" "f" (func $f (param i32 i32)))
      (memory (export "memory") 1)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16))
      (func (export "run") (param i32 i32) (result i32) (call $f (local.get 0) (local.get 1)) (i32.const 0)))
    (core instance $i (instantiate $m (with "" (instance (export "f" (func $lowered))))))
    (func (export "run") (param "input" string) (result (result string (error string)))
      (canon lift (core func $i "run") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))
  (instance $a (instantiate $inner))
  (instance $b (instantiate $outer (with "f" (func $a "f"))))
  (export "run" (func $b "run")))
"""


def test_components_put_together_are_refused() -> None:
    """Wasmtime would end the process when it compiles calls between two memories."""
    with pytest.raises(InvalidComponentError, match="put together of components") as caught:
        count_component(bytes(wat2wasm(COMPOSED)), EMBEDDED)
    assert caught.value.code == "composed"
