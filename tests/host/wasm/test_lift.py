"""Lifting, and lowering with it: what a guest passes on comes back as it was."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartlet.errors import LimitExceededError
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import Err
from tartlet.wasm.lift import MAX_ITEMS

if TYPE_CHECKING:
    from conftest import Guests

# ---- Any WIT type, with Python values of it ----


@dataclass(frozen=True)
class WitType:
    """A WIT type for a component's text, and the Python values that belong to it.

    `definitions` are the named types that it needs, in order; `values` are as they are lifted.
    """

    text: str
    definitions: tuple[tuple[str, str], ...]  # (name, text)
    values: st.SearchStrategy[Any]
    lower: Callable[[Any], Any] = lambda value: value  # from the lifted form to the one that is lowered


def _plain_types() -> list[WitType]:
    def bits(low: int, high: int) -> st.SearchStrategy[int]:
        return st.integers(low, high - 1)

    types = [WitType("bool", (), st.booleans())]
    types += [WitType(f"u{n}", (), bits(0, 1 << n)) for n in (8, 16, 32, 64)]
    types += [WitType(f"s{n}", (), bits(-(1 << n - 1), 1 << n - 1)) for n in (8, 16, 32, 64)]
    types += [WitType(f"f{n}", (), st.floats(width=n, allow_nan=False)) for n in (32, 64)]
    types += [
        WitType("char", (), st.characters(exclude_categories=["Cs"])),
        WitType("string", (), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
        WitType("(list u8)", (), st.binary(max_size=20)),
    ]
    return types


_serials = itertools.count()


def _named(form: str, parts: Sequence[WitType], body: str, **rest: Any) -> WitType:
    """Give a type a name of its own: records, variants, enums and flags cannot be anonymous."""
    name = f"{form}{next(_serials)}"
    definitions = dict(definition for part in parts for definition in part.definitions)
    return WitType(f"${name}", (*definitions.items(), (name, f"({form} {body})")), **rest)


def _unnamed(text: str, parts: Sequence[WitType], **rest: Any) -> WitType:
    definitions = dict(definition for part in parts for definition in part.definitions)
    return WitType(text, tuple(definitions.items()), **rest)


def _enum(names: list[str]) -> WitType:
    return _named("enum", [], " ".join(f'"{name}"' for name in names), values=st.sampled_from(names))


def _flags(names: list[str]) -> WitType:
    return _named("flags", [], " ".join(f'"{name}"' for name in names), values=st.frozensets(st.sampled_from(names)))


def _list(item: WitType) -> WitType:
    if item.text == "u8":
        return _unnamed("(list u8)", [], values=st.binary(max_size=20))
    return _unnamed(
        f"(list {item.text})",
        [item],
        values=st.lists(item.values, max_size=4),
        lower=lambda value: [item.lower(one) for one in value],
    )


def _tuple(items: list[WitType]) -> WitType:
    return _unnamed(
        f"(tuple {' '.join(item.text for item in items)})",
        items,
        values=st.tuples(*(item.values for item in items)),
        lower=lambda value: tuple(item.lower(one) for item, one in zip(items, value, strict=True)),
    )


def _record(items: list[WitType]) -> WitType:
    fields = {f"field-{i}": item for i, item in enumerate(items)}
    return _named(
        "record",
        items,
        " ".join(f'(field "{name}" {item.text})' for name, item in fields.items()),
        values=st.fixed_dictionaries({name: item.values for name, item in fields.items()}),
        lower=lambda value: {name: fields[name].lower(one) for name, one in value.items()},
    )


def _variant(items: list[WitType | None]) -> WitType:
    cases = {f"case-{i}": item for i, item in enumerate(items)}
    return _named(
        "variant",
        [item for item in items if item is not None],
        " ".join(f'(case "{name}"{"" if item is None else " " + item.text})' for name, item in cases.items()),
        values=st.one_of(
            *(st.tuples(st.just(name), st.none() if item is None else item.values) for name, item in cases.items())
        ),
        lower=lambda value: (value[0], None if (item := cases[value[0]]) is None else item.lower(value[1])),
    )


def _option(item: WitType) -> WitType:
    return _unnamed(
        f"(option {item.text})",
        [item],
        values=st.none() | item.values,
        lower=lambda value: None if value is None else item.lower(value),
    )


def _result(ok: WitType | None, err: WitType | None) -> WitType:
    def lower(value: tuple[bool, Any]) -> Any:
        side = ok if value[0] else err
        payload = None if side is None else side.lower(value[1])
        return payload if value[0] else Err(payload)

    text = f"(result{'' if ok is None else ' ' + ok.text}{'' if err is None else f' (error {err.text})'})"
    return _unnamed(
        text,
        [side for side in (ok, err) if side is not None],
        values=st.tuples(st.just(True), st.none() if ok is None else ok.values)
        | st.tuples(st.just(False), st.none() if err is None else err.values),
        lower=lower,
    )


def _larger_types(inner: st.SearchStrategy[WitType]) -> st.SearchStrategy[WitType]:
    never_none = inner.filter(lambda item: not item.text.startswith(("(option", "(result")))
    several = st.lists(inner, min_size=1, max_size=4)
    return st.one_of(
        inner.map(_list),
        several.map(_tuple),
        several.map(_record),
        st.lists(st.none() | inner, min_size=1, max_size=4).map(_variant),
        never_none.map(_option),
        st.builds(_result, st.none() | inner, st.none() | inner),
    )


def wit_types() -> st.SearchStrategy[WitType]:
    """Every WIT type but handles, nested a few levels deep."""
    names = st.integers(1, 32).map(lambda count: [f"name-{i}" for i in range(count)])
    plain = st.one_of(st.sampled_from(_plain_types()), names.map(_enum), names.map(_flags))
    return st.recursive(plain, _larger_types, max_leaves=6)


# ---- A guest that passes values on ----


def echo_text(wit_type: WitType) -> str:
    """A component whose export `f` passes a list to the import `echo`, and returns what that returns."""
    list_type = f"(list {wit_type.text})"
    inside = "\n".join(
        f'(type $own-{name} {text}) (export "{name}" (type ${name} (eq $own-{name})))'
        for name, text in wit_type.definitions
    )
    aliases = "\n".join(f'(alias export $h "{name}" (type ${name}))' for name, _ in wit_type.definitions)
    return f"""(component
      (import "test:host/echo" (instance $h
        {inside}
        (export "echo" (func (param "x" {list_type}) (result {list_type})))))
      {aliases}
      (alias export $h "echo" (func $echo))
      (core module $allocator
        (memory (export "memory") 1)
        (global $next (mut i32) (i32.const 16))
        (func (export "realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result
        i32)
          (local $start i32)
          (local.set $start (i32.and
            (i32.add (global.get $next) (i32.sub (local.get $align) (i32.const 1)))
            (i32.sub (i32.const 0) (local.get $align))))
          (global.set $next (i32.add (local.get $start) (local.get $size)))
          (loop $more (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
            (then (drop (memory.grow (i32.const 1))) (br $more))))
          (local.get $start)))
      (core instance $a (instantiate $allocator))
      (alias core export $a "memory" (core memory $mem))
      (alias core export $a "realloc" (core func $realloc))
      (core func $echo_core (canon lower (func $echo) (memory $mem) (realloc $realloc)))
      (core module $m
        (import "h" "echo" (func $echo (param i32 i32 i32)))
        (import "a" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
        (func (export "f") (param $data i32) (param $size i32) (result i32) (local $out i32)
          (local.set $out (call $realloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 8)))
          (call $echo (local.get $data) (local.get $size) (local.get $out))
          (local.get $out)))
      (core instance $i (instantiate $m
        (with "h" (instance (export "echo" (func $echo_core))))
        (with "a" (instance $a))))
      (func (export "f") (param "x" {list_type}) (result {list_type})
        (canon lift (core func $i "f") (memory $mem) (realloc $realloc))))"""


def round_trip(guests: Guests, wit_type: WitType, values: Any, *, is_suspending: bool = False) -> tuple[Any, Any]:
    """Send a list of values through a guest. Returns what the host function was given, and what came back."""
    whole = _list(wit_type)
    seen = []

    def echo(fiber: Fiber, value: Any) -> Any:
        seen.append(value)
        if is_suspending:
            return fiber.suspend_until(time.monotonic_ns(), lambda: whole.lower(value))
        return whole.lower(value)

    linked = guests.link(echo_text(wit_type), {"test:host/echo": {"echo": echo}})
    back = guests.run(linked, "f", whole.lower(values))
    return seen[0], back


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_round_trip_of_any_type(guests: Guests, data: st.DataObject) -> None:
    """A value of any type reaches the host function, and comes back, as it was; suspending or not."""
    wit_type = data.draw(wit_types())
    values = data.draw(_list(wit_type).values)
    is_suspending = data.draw(st.booleans())

    assert round_trip(guests, wit_type, values, is_suspending=is_suspending) == (values, values)


TEXT = WitType("string", (), st.text())


@pytest.mark.parametrize("lengths", [[MAX_ITEMS - 1], [MAX_ITEMS // 2 - 1, MAX_ITEMS // 2 - 1]])
def test_many_items(guests: Guests, lengths: list[int]) -> None:
    """As many as are allowed, in one list or in lists of lists; the next call begins anew."""
    linked = guests.link(echo_text(_list(TEXT)), {"test:host/echo": {"echo": lambda fiber, value: value}})
    for _ in range(2):
        assert guests.run(linked, "f", [[""] * length for length in lengths]) == [[""] * length for length in lengths]


@pytest.mark.parametrize("lengths", [[MAX_ITEMS], [MAX_ITEMS // 2] * 2, [0] * (MAX_ITEMS + 1)])
def test_too_many_items(guests: Guests, lengths: list[int]) -> None:
    """They end the run by name, before the host has gone through them."""
    linked = guests.link(echo_text(_list(TEXT)), {"test:host/echo": {"echo": lambda fiber, value: []}})
    error = guests.run(linked, "f", [[""] * length for length in lengths])

    assert isinstance(error, LimitExceededError)
    assert (error.code, error.allowed) == ("call_limit", MAX_ITEMS)
    assert error.used > MAX_ITEMS


NUMBER_RANGES = [(f"u{bits}", 0, 2**bits - 1) for bits in (8, 16, 32, 64)]
NUMBER_RANGES += [(f"s{bits}", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize(("name", "low", "high"), NUMBER_RANGES)
def test_limits_of_integers(guests: Guests, name: str, low: int, high: int) -> None:
    """The least and the greatest integer of each type survive, in a packed list and in tuples."""
    number = WitType(name, (), st.nothing())
    values: Any = bytes([low, high]) if name == "u8" else [low, high]

    assert round_trip(guests, number, values) == (values, values)
    assert round_trip(guests, _tuple([number]), [(low,), (high,)]) == ([(low,), (high,)], [(low,), (high,)])


def test_texts_of_all_lengths(guests: Guests) -> None:
    """Empty and large texts, and characters of one to four bytes."""
    values = ["", "a", "\0", "é", "漢", "\U0001f600" * 3, "x" * 100_000]

    assert round_trip(guests, WitType("string", (), st.nothing()), values) == (values, values)


def test_bytes_of_all_values(guests: Guests) -> None:
    """A list<u8> is bytes."""
    values = bytes(range(256)) * 20

    assert round_trip(guests, WitType("u8", (), st.nothing()), values) == (values, values)


def test_special_floats(guests: Guests) -> None:
    """Infinities and signed zeros survive; a double too large for an f32 becomes infinite."""
    single = WitType("f32", (), st.nothing())
    inside = _tuple([single])

    assert round_trip(guests, single, [float("inf"), -0.0, 0.1])[0] == [float("inf"), -0.0, pytest.approx(0.1)]
    assert round_trip(guests, inside, [(1e300,)]) == ([(float("inf"),)], [(float("inf"),)])


def test_as_many_flags_as_there_can_be(guests: Guests) -> None:
    """All of 32 flags, which is what the component model allows, and none."""
    names = [f"name-{i}" for i in range(32)]

    assert round_trip(guests, _flags(names), [frozenset(names), frozenset()])[1] == [frozenset(names), frozenset()]
