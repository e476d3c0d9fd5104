"""wasi:io/poll: sleeping."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tartlet.errors import GuestTrapError, RunCancelledError
from tartlet.wasm.fiber import Status
from tartlet.wasm.wasi import wasi_interfaces

if TYPE_CHECKING:
    from tests.host.wasm.conftest import Guests

SLEEPER = """(component
  (import "wasi:io/poll@0.2.9" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
    (export "[method]pollable.ready" (func (param "self" (borrow $pollable)) (result bool)))
    (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.9" (instance $clock
    (alias outer 1 $pollable (type $pollable'))
    (export "pollable" (type $pollable (eq $pollable')))
    (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
  (alias export $poll "[method]pollable.block" (func $block))
  (alias export $poll "[method]pollable.ready" (func $ready))
  (alias export $poll "poll" (func $poll_func))
  (alias export $clock "subscribe-duration" (func $subscribe))
  (core module $allocator
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
  (core instance $a (instantiate $allocator))
  (alias core export $a "memory" (core memory $mem))
  (alias core export $a "realloc" (core func $realloc))
  (core func $block_core (canon lower (func $block)))
  (core func $ready_core (canon lower (func $ready)))
  (core func $poll_core (canon lower (func $poll_func) (memory $mem) (realloc $realloc)))
  (core func $subscribe_core (canon lower (func $subscribe)))
  (core func $drop_core (canon resource.drop $pollable))
  (core module $m
    (import "a" "memory" (memory 1))
    (import "h" "block" (func $block (param i32)))
    (import "h" "ready" (func $ready (param i32) (result i32)))
    (import "h" "poll" (func $poll (param i32 i32 i32)))
    (import "h" "subscribe" (func $subscribe (param i64) (result i32)))
    (import "h" "drop" (func $drop (param i32)))
    (func (export "block") (param $ns i64) (result i32) (local $p i32) (local $before i32)
      (local.set $p (call $subscribe (local.get $ns)))
      (local.set $before (call $ready (local.get $p)))
      (call $block (local.get $p))
      (i32.add (i32.mul (local.get $before) (i32.const 10)) (call $ready (local.get $p)))
      (call $drop (local.get $p)))
    (func (export "poll") (param $ns i64) (param $count i32) (result i32)
      (i32.store (i32.const 0) (call $subscribe (local.get $ns)))
      (call $poll (i32.const 0) (local.get $count) (i32.const 16))
      (i32.add (i32.mul (i32.load (i32.const 20)) (i32.const 10)) (i32.load (i32.load (i32.const 16)))))
    (func (export "hoard") (loop $more (drop (call $subscribe (i64.const 0))) (br $more))))
  (core instance $i (instantiate $m (with "a" (instance $a)) (with "h" (instance
    (export "block" (func $block_core)) (export "ready" (func $ready_core)) (export "poll" (func $poll_core))
    (export "subscribe" (func $subscribe_core)) (export "drop" (func $drop_core))))))
  (func (export "block") (param "ns" u64) (result u32) (canon lift (core func $i "block")))
  (func (export "poll") (param "ns" u64) (param "count" u32) (result u32) (canon lift (core func $i "poll")))
  (func (export "hoard") (canon lift (core func $i "hoard"))))"""

MS = 1_000_000


def test_block_sleeps(guests: Guests) -> None:
    """A pollable of the clock is ready after its time, and blocking waits for that; the pollable can be dropped."""
    linked = guests.link(SLEEPER, wasi_interfaces())
    began_ns = time.monotonic_ns()

    assert guests.run(linked, "block", 20 * MS) == 1  # not ready before, ready after
    assert time.monotonic_ns() - began_ns >= 20 * MS
    assert guests.run(linked, "block", 0) == 11  # ready at once


def test_poll_gives_positions(guests: Guests) -> None:
    """Polling returns which are ready: one, the first."""
    linked = guests.link(SLEEPER, wasi_interfaces())

    assert guests.run(linked, "poll", 5 * MS, 1) == 10
    assert guests.run(linked, "poll", 0, 1) == 10


def test_poll_of_nothing_is_a_trap(guests: Guests) -> None:
    """An empty list can never be ready."""
    error = guests.run(guests.link(SLEEPER, wasi_interfaces()), "poll", 0, 0)

    assert isinstance(error, GuestTrapError)
    assert "empty list" in error.message


def test_sleep_for_an_hour_can_be_killed(guests: Guests) -> None:
    """A sleeping guest holds no thread, can be killed, and leaves no timer."""
    launched = guests.launch(guests.link(SLEEPER, wasi_interfaces()), "block", 3600_000 * MS)
    while launched.fiber.status is not Status.SUSPENDED:
        time.sleep(0.001)
    error = RunCancelledError("enough")
    guests.call(lambda: launched.fiber.end(error))

    assert launched.outcome() is error
    assert guests.call(lambda: guests.executor.num_timers) == 0


def test_sleep_for_centuries(guests: Guests) -> None:
    """The longest duration that can be asked for is no problem."""
    launched = guests.launch(guests.link(SLEEPER, wasi_interfaces()), "block", 2**64 - 1)
    while launched.fiber.status is not Status.SUSPENDED:
        time.sleep(0.001)
    guests.call(lambda: launched.fiber.end(RunCancelledError("enough")))

    assert isinstance(launched.outcome(), RunCancelledError)


def test_flood_of_pollables(guests: Guests) -> None:
    """Pollables are limited like other handles."""
    error = guests.run(guests.link(SLEEPER, wasi_interfaces()), "hoard")

    assert (error.code, error.limit, error.used, error.allowed) == ("handle_limit", "max_handles", 4097, 4096)
