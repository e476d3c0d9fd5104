"""A runner that compiles source instead of running it."""

from __future__ import annotations

from typing import ClassVar

from tartlet.wasm.fiber import FiberLimits


class CompileJob:
    """The state of a fiber that calls the runner's `compile`. Source that is only compiled can be big, no more."""

    LIMITS: ClassVar = FiberLimits(memory_bytes=1 << 30, cpu_ns=60_000_000_000, host_calls=1_000_000)

    def __init__(self, program: str) -> None:
        self._program = program

    def take_program(self) -> str:
        """The program that the runner asks for."""
        return self._program

    def print(self, text: str) -> None:
        """What is printed, such as a SyntaxWarning, comes again in every run, and is told there."""

    def log(self, log: object) -> None:
        """As `print`."""
