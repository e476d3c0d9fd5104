"""Callbacks: no exception leaves them, wherever it strikes."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from tartlet.errors import RunError
from tartlet.wasm.callbacks import internal_error
from tartlet.wasm.fiber import Fiber

if TYPE_CHECKING:
    from conftest import Guests


def strike_once(place: str, problem: type[BaseException]) -> Any:
    """A trace function that raises at the first line of the first call of the callback in which `place` is set."""
    has_struck = False

    def on_line(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal has_struck
        if event == "line" and not has_struck:
            has_struck = True
            raise problem
        return on_line

    def on_call(frame: FrameType, event: str, _arg: Any) -> Any:
        is_callback = frame.f_code.co_name == "callback" and place in frame.f_code.co_varnames
        return on_line if event == "call" and is_callback and not has_struck else None

    return on_call


@pytest.mark.parametrize("problem", [KeyboardInterrupt, MemoryError])
def test_exception_before_the_callback_can_catch_it(
    guests: Guests, ops_text: str, problem: type[BaseException]
) -> None:
    """An exception at a callback's very first line ends that run as an internal error; the next run works."""
    linked = guests.link(ops_text, {"test:host/ops": {"now": lambda _fiber, x: x}})

    guests.call(lambda: sys.settrace(strike_once("continuation", problem)))
    error = guests.run(linked, "sum-now", 1)
    guests.call(lambda: sys.settrace(None))

    assert isinstance(error, RunError)
    assert error.code == "internal"
    assert problem.__name__ in error.message
    assert guests.run(linked, "sum-now", 3) == 3


def test_exception_in_the_epoch_callback(guests: Guests, ops_text: str) -> None:
    """An exception while an epoch is handled ends that run as an internal error."""

    class Broken(Fiber):
        def is_turn_over(self) -> bool:
            raise ZeroDivisionError

    linked = guests.link(ops_text)
    launched = guests.not_launched()

    def start() -> None:
        launched.fiber = Broken(guests.executor, linked, on_end=launched.on_end)
        launched.fiber.start("spin")

    guests.call(start)

    assert launched.outcome().code == "internal"


def test_exception_in_a_destructor(guests: Guests) -> None:
    """An exception in a destructor ends that run as an internal error."""
    text = """(component
      (import "test:host/things" (instance $h
        (export "thing" (type $thing (sub resource)))
        (export "make" (func (result (own $thing))))))
      (alias export $h "thing" (type $thing))
      (alias export $h "make" (func $make))
      (core func $make_core (canon lower (func $make)))
      (core func $drop_core (canon resource.drop $thing))
      (core module $m
        (import "h" "make" (func $make (result i32)))
        (import "h" "drop" (func $drop (param i32)))
        (func (export "f") (call $drop (call $make))))
      (core instance $i (instantiate $m (with "h" (instance
        (export "make" (func $make_core)) (export "drop" (func $drop_core))))))
      (func (export "f") (canon lift (core func $i "f"))))"""
    things = {"thing": lambda _fiber, _rep: 1 // 0, "make": lambda _fiber: 1}

    error = guests.run(guests.link(text, {"test:host/things": things}), "f")

    assert error.code == "internal"
    assert "destructor of thing" in error.message


def test_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    """A fault of the host's own names where it struck, and its traceback is in the log."""
    error = internal_error("the test", ValueError("oops"))

    assert error.message == "internal error in the test: ValueError: oops"
    assert "fault in the test" in caplog.text
