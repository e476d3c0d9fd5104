"""Binding of `log` in wit/: what the run tells people."""

from __future__ import annotations

from collections.abc import Mapping

from tartlet.events import Log, LogLevel
from tartlet.runtime.guest_state import GuestFiber
from tartlet.wasm.host_function import HostFunction


def print_text(fiber: GuestFiber, text: str) -> None:
    """Add output text."""
    fiber.state.print(text)


def log(fiber: GuestFiber, level: LogLevel, message: str) -> None:
    """Add a log line."""
    fiber.state.log(Log(level, message))


INTERFACE: Mapping[str, HostFunction] = {"print": print_text, "log": log}
