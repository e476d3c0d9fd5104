"""What the fake engine does with commands about constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import CompileConstraint, FreeConstraint


class FakeConstraintCommands:
    """Make and free constraints."""

    def __init__(self, state: FakeState) -> None:
        self._state = state
        self.handlers: dict[type, Callable[[Any], None]] = {
            CompileConstraint: self._compile,
            FreeConstraint: self._free,
        }

    def _compile(self, command: CompileConstraint) -> None:
        constraints = self._state.constraints
        error = constraints.compile(command.constraint_id, command.run_id, command.kind, command.text)
        self._state.answer(command.constraint_id, error)

    def _free(self, command: FreeConstraint) -> None:
        self._state.constraints.free(command.constraint_id)
