"""Linking: interfaces by name, versions, resources, and imports that nobody implements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tartlet.errors import GuestTrapError, InvalidComponentError, InvalidHandleError
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import Err

if TYPE_CHECKING:
    from conftest import Guests

# Two resource types, and a core module that treats their handles as the numbers that they are.
RESOURCES = """(component
  (import "test:host/things@0.1.0" (instance $h
    (export "thing" (type $thing (sub resource)))
    (export "other" (type $other (sub resource)))
    (export "[static]thing.open" (func (param "number" u32) (result (result (own $thing)))))
    (export "[method]thing.number" (func (param "self" (borrow $thing)) (result u32)))
    (export "make-other" (func (result (own $other))))
    (export "take" (func (param "thing" (own $thing)) (result u32)))))
  (alias export $h "thing" (type $thing))
  (alias export $h "other" (type $other))
  (alias export $h "[static]thing.open" (func $open))
  (alias export $h "[method]thing.number" (func $number))
  (alias export $h "make-other" (func $make_other))
  (alias export $h "take" (func $take))
  (core module $memory (memory (export "memory") 1))
  (core instance $memory (instantiate $memory))
  (alias core export $memory "memory" (core memory $mem))
  (core func $open_core (canon lower (func $open) (memory $mem)))
  (core func $number_core (canon lower (func $number)))
  (core func $make_other_core (canon lower (func $make_other)))
  (core func $take_core (canon lower (func $take)))
  (core func $drop_core (canon resource.drop $thing))
  (core module $m
    (import "m" "memory" (memory 1))
    (import "h" "open" (func $open (param i32 i32)))
    (import "h" "number" (func $number (param i32) (result i32)))
    (import "h" "make-other" (func $make_other (result i32)))
    (import "h" "take" (func $take (param i32) (result i32)))
    (import "h" "drop" (func $drop (param i32)))
    (func $open_handle (param $number i32) (result i32)
      (call $open (local.get $number) (i32.const 8))
      (if (i32.load8_u (i32.const 8)) (then (return (i32.const 0))))
      (i32.load (i32.const 12)))
    (func (export "use") (param $number i32) (result i32) (local $thing i32) (local $result i32)
      (local.set $thing (call $open_handle (local.get $number)))
      (local.set $result (call $number (local.get $thing)))
      (call $drop (local.get $thing))
      (local.get $result))
    (func (export "keep") (param $number i32) (result i32) (call $open_handle (local.get $number)))
    (func (export "give") (param $number i32) (result i32) (call $take (call $open_handle (local.get $number))))
    (func (export "forge") (param $handle i32) (result i32) (call $number (local.get $handle)))
    (func (export "mistake") (result i32) (call $number (call $make_other)))
    (func (export "use-after-drop") (param $number i32) (result i32) (local $thing i32)
      (local.set $thing (call $open_handle (local.get $number)))
      (call $drop (local.get $thing))
      (call $number (local.get $thing)))
    (func (export "drop-twice") (param $number i32) (result i32) (local $thing i32)
      (local.set $thing (call $open_handle (local.get $number)))
      (call $drop (local.get $thing))
      (call $drop (local.get $thing))
      (i32.const 0)))
  (core instance $i (instantiate $m (with "m" (instance $memory)) (with "h" (instance
    (export "open" (func $open_core)) (export "number" (func $number_core)) (export "take" (func $take_core))
    (export "make-other" (func $make_other_core)) (export "drop" (func $drop_core))))))
  (func (export "use") (param "number" u32) (result u32) (canon lift (core func $i "use")))
  (func (export "keep") (param "number" u32) (result u32) (canon lift (core func $i "keep")))
  (func (export "give") (param "number" u32) (result u32) (canon lift (core func $i "give")))
  (func (export "forge") (param "handle" u32) (result u32) (canon lift (core func $i "forge")))
  (func (export "mistake") (result u32) (canon lift (core func $i "mistake")))
  (func (export "use-after-drop") (param "number" u32) (result u32) (canon lift (core func $i "use-after-drop")))
  (func (export "drop-twice") (param "number" u32) (result u32) (canon lift (core func $i "drop-twice"))))"""


class Things:
    """The host's side: every call is noted."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def interfaces(self) -> dict[str, dict[str, Any]]:
        """The host functions."""
        return {
            "test:host/things": {
                "thing": self.drop,
                "other": self.drop,
                "[static]thing.open": self.open,
                "[method]thing.number": self.number,
                "make-other": lambda _fiber: 5,
                "take": self.take,
            }
        }

    def open(self, _fiber: Fiber, number: int) -> int:
        self.calls.append(("open", number))
        if number == 13:
            raise Err(None)
        return number

    def number(self, _fiber: Fiber, rep: int) -> int:
        self.calls.append(("number", rep))
        return rep ^ 1

    def take(self, _fiber: Fiber, rep: int) -> int:
        self.calls.append(("take", rep))
        return rep

    def drop(self, _fiber: Fiber, rep: int) -> None:
        self.calls.append(("drop", rep))


def test_life_of_a_resource(guests: Guests) -> None:
    """The number that the host chose arrives in methods, and in the destructor when the guest drops its handle."""
    things = Things()

    assert guests.run(guests.link(RESOURCES, things.interfaces()), "use", 2**32 - 1) == 2**32 - 2
    assert things.calls == [("open", 2**32 - 1), ("number", 2**32 - 1), ("drop", 2**32 - 1)]


def test_resource_that_is_kept(guests: Guests) -> None:
    """What a guest still holds at its end is not dropped for it: that is the host's to free."""
    things = Things()

    guests.run(guests.link(RESOURCES, things.interfaces()), "keep", 3)

    assert things.calls == [("open", 3)]


def test_resource_that_is_given_back(guests: Guests) -> None:
    """An owned handle that a guest passes to the host is the host's: no destructor runs."""
    things = Things()

    assert guests.run(guests.link(RESOURCES, things.interfaces()), "give", 3) == 3
    assert things.calls == [("open", 3), ("take", 3)]


def test_err_of_a_constructor(guests: Guests) -> None:
    """`Err` becomes the err case of a result."""
    assert guests.run(guests.link(RESOURCES, Things().interfaces()), "keep", 13) == 0


@pytest.mark.parametrize(
    ("export", "args"),
    [("forge", (77,)), ("forge", (0,)), ("mistake", ()), ("use-after-drop", (4,)), ("drop-twice", (4,))],
)
def test_forged_handles(guests: Guests, export: str, args: tuple[int, ...]) -> None:
    """An unknown handle, one of another type and one that was dropped end the run, before the host function hears."""
    things = Things()

    error = guests.run(guests.link(RESOURCES, things.interfaces()), export, *args)

    assert isinstance(error, InvalidHandleError)
    assert "number" not in [name for name, _ in things.calls]


def test_error_in_a_destructor(guests: Guests) -> None:
    """A TartletError raised by a destructor is the outcome."""
    error = InvalidHandleError("not yours")

    def fail(_fiber: Fiber, _rep: int) -> None:
        raise error

    interfaces = Things().interfaces()
    interfaces["test:host/things"]["thing"] = fail

    assert guests.run(guests.link(RESOURCES, interfaces), "use", 1) is error


TWO_VERSIONS = """(component
  (import "test:host/old@0.1.0" (instance $old (export "f" (func (result u32)))))
  (import "test:host/old@0.1.7" (instance $new (export "f" (func (result u32))) (export "g" (func (result u32)))))
  (import "test:host/unknown@1.0.0" (instance $unknown (export "f" (func (result u32)))))
  (alias export $old "f" (func $old_f))
  (alias export $new "f" (func $new_f))
  (alias export $new "g" (func $new_g))
  (alias export $unknown "f" (func $unknown_f))
  (core func $old_core (canon lower (func $old_f)))
  (core func $new_core (canon lower (func $new_f)))
  (core func $half_core (canon lower (func $new_g)))
  (core func $unknown_core (canon lower (func $unknown_f)))
  (core module $m
    (import "h" "old" (func $old (result i32)))
    (import "h" "new" (func $new (result i32)))
    (import "h" "half" (func $half (result i32)))
    (import "h" "unknown" (func $unknown (result i32)))
    (func (export "known") (result i32) (i32.add (call $old) (call $new)))
    (func (export "half") (result i32) (call $half))
    (func (export "unknown") (result i32) (call $unknown)))
  (core instance $i (instantiate $m (with "h" (instance
    (export "old" (func $old_core)) (export "new" (func $new_core)) (export "half" (func $half_core))
    (export "unknown" (func $unknown_core))))))
  (func (export "known") (result u32) (canon lift (core func $i "known")))
  (func (export "half") (result u32) (canon lift (core func $i "half")))
  (func (export "unknown") (result u32) (canon lift (core func $i "unknown"))))"""


def test_versions_and_unknown_imports(guests: Guests) -> None:
    """Interfaces are found whatever their version; what is not implemented traps when it is called, and not before."""
    linked = guests.link(TWO_VERSIONS, {"test:host/old": {"f": lambda _fiber: 21}})

    assert guests.run(linked, "known") == 42
    assert isinstance(guests.run(linked, "half"), GuestTrapError)
    assert isinstance(guests.run(linked, "unknown"), GuestTrapError)


def test_exports(guests: Guests) -> None:
    """Exported functions are found by name; the lack of one says what there is."""
    linked = guests.link("""(component
      (core module $m (func (export "f")))
      (core instance $i (instantiate $m))
      (func (export "go") (canon lift (core func $i "f"))))""")

    assert list(linked.exports) == ["go"]
    assert guests.run(linked, "go") is None
    with pytest.raises(InvalidComponentError, match="'run'; it exports: go") as caught:
        linked.export("run")
    assert caught.value.code == "missing_export"
