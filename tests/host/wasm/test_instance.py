"""Instances: the C memory of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tartlet.errors import GuestTrapError
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.instance import Instance
from tartlet.wasm.lower import LoweringError

if TYPE_CHECKING:
    from conftest import Guests

TAKES_TEXTS = """(component
  (core module $m (memory (export "memory") 20) (func (export "f") (param i32 i32 i32))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16)))
  (core instance $i (instantiate $m))
  (alias core export $i "memory" (core memory $mem))
  (alias core export $i "realloc" (core func $realloc))
  (func (export "f") (param "text" string) (param "n" u32)
    (canon lift (core func $i "f") (memory $mem) (realloc $realloc))))"""


def test_arguments_are_freed(guests: Guests) -> None:
    """Arguments are freed when the call ends, is never made, or when a later one does not fit."""
    linked = guests.link(TAKES_TEXTS)
    text = "x" * 500_000

    def never_made() -> None:
        Instance(linked, "f", (text, 1)).discard()

    def does_not_fit() -> None:
        with pytest.raises(LoweringError):
            Instance(linked, "f", (text, "1"))

    process = psutil.Process()
    before = process.memory_info().rss
    for _ in range(100):
        never_made()
        does_not_fit()
        assert guests.run(linked, "f", text, 1) is None

    assert process.memory_info().rss - before < 30 << 20  # 150 MB were lowered


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("(memory 1)", "the program has more than one linear memory"),
        ("(table 100001 funcref)", "table minimum size of 100001 elements exceeds table limits"),
        (" ".join(["(table 1 funcref)"] * 11), "table count too high"),
    ],
)
def test_things_besides_memory_are_limited(guests: Guests, item: str, reason: str) -> None:
    """An instance has one memory, and only so many tables and table elements."""
    text = f"""(component
      (core module $m (memory 1) (func (export "f")))
      (core module $n {item})
      (core instance $i (instantiate $m))
      (core instance (instantiate $n))
      (func (export "f") (canon lift (core func $i "f"))))"""

    error = guests.run(guests.link(text), "f")

    assert isinstance(error, GuestTrapError)
    assert reason in error.message


def test_too_many_core_instances(guests: Guests) -> None:
    """A component cannot consist of any number of instances."""
    text = f"""(component
      (core module $m (func (export "f")))
      (core instance $i (instantiate $m))
      {"(core instance (instantiate $m))" * 100}
      (func (export "f") (canon lift (core func $i "f"))))"""

    assert "instance count too high" in guests.run(guests.link(text), "f").message


def test_instances_are_found_by_their_store(guests: Guests, ops_text: str) -> None:
    """While a fiber lives, its component knows it by its store's context; host functions get that fiber."""
    seen: list[Any] = []

    def now(fiber: Fiber, x: int) -> int:
        seen.append((fiber, list(fiber.linked.fibers.values())))
        return x

    linked = guests.link(ops_text, {"test:host/ops": {"now": now}})
    launched = guests.launch(linked, "sum-now", 1)
    launched.outcome()

    assert seen == [(launched.fiber, [launched.fiber])]
    assert linked.fibers == {}
