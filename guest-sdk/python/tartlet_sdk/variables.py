"""The run's variables: texts by name, which all tasks of the run share, and the client that launched it hears of.

from tartlet_sdk import variables

variables.set("plan", text)
plan = await variables.wait("plan")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tartlet_sdk import checks, event_loop, wit
from tartlet_sdk.host_call import call

if TYPE_CHECKING:
    from wit_world.imports import store as wit_store

U64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable as it was when it was read."""

    value: str
    version: int
    """How many times it has been written: 1 after the first time. 0: it does not exist."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Swap:
    """What became of a compare-and-swap."""

    written: bool
    """Whether the value was written."""
    now: Variable
    """What the variable holds now: what was written, or what was found instead."""


def get(name: str) -> Variable | None:
    """The variable of that name, if there is one."""
    held = wit.store.get_variable(checks.text(name, "name", "variables.get"))
    return None if held is None else _variable(held)


def set(name: str, value: str) -> int:
    """Write a variable; its new version. Raises `QuotaExceeded` for more than the run may keep."""
    called = "variables.set"
    checks.text(name, "name", called)
    return call(called, wit.store.set_variable, name, checks.text(value, "value", called))


def append(name: str, value: str) -> int:
    """Add to the end of a variable, which is empty if it does not exist; its new version. Raises as `set`."""
    called = "variables.append"
    checks.text(name, "name", called)
    return call(called, wit.store.append_variable, name, checks.text(value, "value", called))


def compare_and_swap(name: str, value: str, version: int) -> Swap:
    """Write a variable if it still has that version; 0 if it does not exist yet. Raises as `set`."""
    called = "variables.compare_and_swap"
    checks.text(name, "name", called)
    checks.text(value, "value", called)
    checks.whole(version, "version", called, high=U64)
    swap = call(called, wit.store.compare_and_swap_variable, name, value, version)
    return Swap(swap.written, _variable(swap.now))


def versions() -> dict[str, int]:
    """The version of each variable, by name, in the order in which they were first written."""
    return {entry.name: entry.version for entry in wit.store.list_variables()}


async def wait(name: str, above: int = 0) -> Variable:
    """Wait until the variable's version is above that one, and read it. By default until it exists.

    Raises `Deadlock`, at once, if everything in the run waits for such changes: nobody is left to make them.
    """
    called = "variables.wait"
    checks.text(name, "name", called)
    checks.whole(above, "above", called, high=U64)
    await event_loop.finish(call(called, wit.store.variable_above, name, above), called)
    held = wit.store.get_variable(name)
    assert held is not None  # it has a version
    return _variable(held)


def _variable(held: wit_store.Variable) -> Variable:
    return Variable(held.value, held.version)
