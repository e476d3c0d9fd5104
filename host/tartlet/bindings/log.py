"""Binding of `log` in wit/: what the run tells people."""

from __future__ import annotations

from collections.abc import Mapping

from tartlet.events import Log, LogLevel
from tartlet.runtime.run_state import RunFiber
from tartlet.wasm.host_function import HostFunction


def print_text(fiber: RunFiber, text: str) -> None:
    """Add output text."""
    fiber.state.print(text)


def log(fiber: RunFiber, level: LogLevel, message: str) -> None:
    """Add a log line."""
    fiber.state.log(Log(level, message))


INTERFACE: Mapping[str, HostFunction] = {"print": print_text, "log": log}
