"""Binding of `store` in wit/: the variables of a run."""

from __future__ import annotations

from collections.abc import Mapping

from tartlet.runtime.guest_state import GuestFiber
from tartlet.runtime.variables import Versioned
from tartlet.wasm.host_function import HostFunction


def get_variable(fiber: GuestFiber, name: str) -> dict[str, object] | None:
    """Give a variable, if there is one."""
    held = fiber.state.variables.get(name)
    return None if held is None else _record(held)


def set_variable(fiber: GuestFiber, name: str, value: str) -> int:
    """Write a variable."""
    return fiber.state.variables.set(name, value)


def append_variable(fiber: GuestFiber, name: str, value: str) -> int:
    """Add to the end of a variable."""
    return fiber.state.variables.append(name, value)


def compare_and_swap_variable(fiber: GuestFiber, name: str, value: str, version: int) -> dict[str, object]:
    """Write a variable if it still has that version."""
    swap = fiber.state.variables.compare_and_swap(name, value, version)
    return {"written": swap.is_written, "now": _record(swap.now)}


def list_variables(fiber: GuestFiber) -> list[dict[str, object]]:
    """Give the names and versions of all."""
    return [{"name": name, "version": version} for name, version in fiber.state.variables.versions()]


def variable_above(fiber: GuestFiber, name: str, version: int) -> int:
    """Make an event that becomes ready once the version is above that one."""
    return fiber.state.variables.wait_above(fiber.state, name, version).number


def _record(held: Versioned) -> dict[str, object]:
    return {"version": held.version, "value": held.value}


INTERFACE: Mapping[str, HostFunction] = {
    "get-variable": get_variable,
    "set-variable": set_variable,
    "append-variable": append_variable,
    "compare-and-swap-variable": compare_and_swap_variable,
    "list-variables": list_variables,
    "variable-above": variable_above,
}
