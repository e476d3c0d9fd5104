"""Binding of `source` in wit/: how a language runner gets the author's program. For our own runners only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tartlet.wasm.host_function import HostFunction


class ProgramHolder(Protocol):
    """A run, or what waits to become one."""

    def take_program(self) -> object:
        """The program as JSON, or SUSPEND."""
        ...


class RunnerFiber(Protocol):
    """A fiber that carries a runner."""

    @property
    def state(self) -> ProgramHolder:
        """Where the program comes from."""
        ...


def program(fiber: RunnerFiber) -> object:
    """Give the program, when the runner is given one."""
    return fiber.state.take_program()


INTERFACE: Mapping[str, HostFunction] = {"program": program}
