from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet.events import Variable
from tartlet.limits import Limits
from tartlet.runtime.event_table import EventStatus, EventTable
from tartlet.runtime.handles import HandleTable
from tartlet.runtime.variables import Swap, Variables, Versioned
from tartlet.wasm.host_function import Err
from tartlet.wasm.timers import Timers

LATER_NS = 10**12


@dataclass(eq=False)
class World:
    """Variables, and what the caller has heard of them."""

    limits: Limits = field(default_factory=Limits)
    told: list[Variable] = field(default_factory=list)
    told_bytes: int = 0

    def __post_init__(self) -> None:
        self.timers = Timers()
        self.handles = HandleTable(None)
        self.events = EventTable(self.handles, self.timers, lambda action: action())
        self.variables = Variables(self.limits, self.tell)
        self.num_wakes = 0

    def wait_above(self, name: str, version: int) -> Any:
        """A wait of the only program."""
        return self.variables.wait_above(self, name, version)

    def wake(self) -> None:
        self.num_wakes += 1

    def tell(self, variable: Variable, size: int) -> None:
        self.told.append(variable)
        self.told_bytes += size


def code(caught: pytest.ExceptionInfo[Err]) -> Any:
    assert isinstance(caught.value.value, dict)
    return caught.value.value["code"]


def test_versions_count_the_writes() -> None:
    """The first write makes version 1, each further one the next; the caller hears of each, with the whole value."""
    world = World()
    variables = world.variables

    assert variables.get("x") is None
    assert [variables.set("x", "a"), variables.append("x", "é"), variables.append("y", "b")] == [1, 2, 1]
    assert variables.get("x") == Versioned(2, "aé")
    assert variables.versions() == [("x", 2), ("y", 1)]
    assert world.told == [Variable("x", "a", 1), Variable("x", "aé", 2), Variable("y", "b", 1)]
    assert (variables.num_bytes, world.told_bytes) == (4 + 2, 2 + 4 + 2)


def test_compare_and_swap_writes_only_the_version_that_was_seen() -> None:
    """On a conflict nothing is written, nobody is told, and the answer is what is there."""
    world = World()
    swap = world.variables.compare_and_swap

    assert swap("x", "mine", 1) == Swap(False, Versioned(0, ""))
    assert swap("x", "mine", 0) == Swap(True, Versioned(1, "mine"))
    assert swap("x", "yours", 0) == Swap(False, Versioned(1, "mine"))
    assert swap("x", "again", 1) == Swap(True, Versioned(2, "again"))
    assert len(world.told) == 2


def test_a_wait_is_over_once_the_version_is_above() -> None:
    """Also at once, if it is already; a write that is not enough leaves the wait."""
    world = World()
    first, second = world.wait_above("x", 0), world.wait_above("x", 1)

    world.variables.set("x", "1")
    assert (first.status, second.status) == (EventStatus.READY, EventStatus.PENDING)
    world.variables.set("x", "2")
    assert second.status is EventStatus.READY
    assert world.num_wakes == 2
    assert world.wait_above("x", 1).status is EventStatus.READY
    assert world.wait_above("x", 2).status is EventStatus.PENDING


def test_a_wait_that_is_given_up_is_forgotten() -> None:
    """Dropping its event leaves nothing behind, and the write does not concern it."""
    world = World()
    given_up, kept = world.wait_above("x", 0), world.wait_above("x", 0)

    world.events.drop(given_up)
    assert world.variables._waits == {"x": {kept: (0, world)}}
    world.variables.set("x", "1")

    assert (given_up.status, kept.status) == (EventStatus.SPENT, EventStatus.READY)
    assert world.variables._waits == {}
    world.events.drop(kept)


def test_waiting_for_each_other_is_a_deadlock() -> None:
    """B13: if only the run itself could end each of the waits, all of them fail at once, and name the variables."""
    world = World()
    first, second = world.wait_above("x", 0), world.wait_above("y", 0)

    assert world.events.poll([first.number, second.number], None) == [first.number, second.number]
    for event in first, second:
        assert event.error is not None
        assert event.error.code == "deadlock"
        assert "variable 'x'" in event.error.message
        assert "variable 'y'" in event.error.message


@pytest.mark.parametrize("way_out", ["a timer", "a timeout", "another event", "only a look"])
def test_a_wait_that_something_else_can_end_is_none(way_out: str) -> None:
    """With a timer, a timeout or an engine's event among what is waited for, the wait goes on."""
    world = World()
    numbers = [world.wait_above("x", 0).number]
    timeout_ns = None
    if way_out == "a timer":
        numbers.append(world.events.add_timer(LATER_NS).number)
    elif way_out == "another event":
        numbers.append(world.events.add().number)
    else:
        timeout_ns = LATER_NS if way_out == "a timeout" else 0

    assert not world.events.poll(numbers, timeout_ns)
    assert world.events.get(numbers[0]).status is EventStatus.PENDING


def test_the_number_of_variables_is_limited() -> None:
    """One more is refused, with the numbers; those that there are can still be written."""
    variables = World(Limits(max_variables=2)).variables
    variables.set("x", "")
    variables.set("y", "")

    with pytest.raises(Err) as caught:
        variables.set("z", "")
    assert code(caught) == "quota-exceeded"
    assert "max_variables allows 2, this would make it 3" in str(caught.value)
    assert variables.set("x", "more") == 2


@pytest.mark.parametrize(
    "write",
    [
        lambda variables: variables.set("x", "12345678éé"),
        lambda variables: variables.append("x", "5678éé"),
        lambda variables: variables.compare_and_swap("x", "12345678éé", 1),
    ],
)
def test_their_size_is_limited(write: Callable[[Variables], object]) -> None:
    """A write that would make them too large is refused, and changes nothing; a smaller one is not."""
    world = World(Limits(max_variable_bytes=10))
    variables = world.variables
    variables.set("x", "1234")

    with pytest.raises(Err) as caught:
        write(variables)
    assert code(caught) == "quota-exceeded"
    assert variables.get("x") == Versioned(1, "1234")
    assert len(world.told) == 1
    assert variables.set("x", "123456789") == 2


@pytest.mark.parametrize("name", ["", "x" * 257, "é" * 129])
def test_a_name_is_neither_empty_nor_long(name: str) -> None:
    """It is refused wherever it is given for writing or waiting."""
    world = World()
    variables = world.variables

    for call in (
        lambda: variables.set(name, ""),
        lambda: variables.append(name, ""),
        lambda: variables.compare_and_swap(name, "", 7),
        lambda: world.wait_above(name, 0),
    ):
        with pytest.raises(Err) as caught:
            call()
        assert code(caught) == "invalid-argument"


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(["set", "append", "wait", "drop"]), st.text())))
def test_any_writes_and_waits_add_up(script: list[tuple[str, str, str]]) -> None:
    """After any script the size is that of what is held, and every wait is ready just if its version was passed."""
    world = World()
    waits: list[tuple[str, int, Any]] = []
    for name, action, text in script:
        held = world.variables.get(name)
        if action == "wait":
            version = len(text)
            waits.append((name, version, world.wait_above(name, version)))
        elif action == "drop" and waits:
            world.events.drop(waits.pop()[2])
        elif action in ("set", "append"):
            old = held.value if held and action == "append" else ""
            getattr(world.variables, action)(name, text)
            assert world.variables.get(name) == Versioned(held.version + 1 if held else 1, old + text)

    now = {name: world.variables.get(name) or Versioned(0, "") for name in "xyz"}
    assert world.variables.num_bytes == sum(len((n + v.value).encode()) for n, v in now.items() if v.version)
    assert len(world.told) == sum(held.version for held in now.values())
    for name, version, event in waits:
        assert (event.status is EventStatus.READY) == (now[name].version > version)
    left = sum(len(entry) for entry in world.variables._waits.values())
    assert left == sum(event.status is EventStatus.PENDING for *_, event in waits)


def test_nothing_is_left_after_the_run() -> None:
    """Clearing frees values and waits."""
    world = World()
    world.variables.set("x", "1")
    world.wait_above("x", 1)

    world.variables.clear()

    assert (len(world.variables), world.variables._waits) == (0, {})
