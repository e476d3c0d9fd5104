"""What the fake engine does with commands about constraints, masks and matchers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import (
    CombineConstraints,
    CompileConstraint,
    ConstrainToMask,
    EngineError,
    ErrorCode,
    ForkMatcher,
    FreeConstraint,
    FreeMask,
    FreeMatcher,
    MakeMask,
    MatcherMoved,
    MoveMatcher,
    OpenMatcher,
)


class FakeConstraintCommands:
    """Make and free constraints, masks, and matchers, to which everything is allowed everywhere."""

    def __init__(self, state: FakeState) -> None:
        self._state = state
        self.handlers: dict[type, Callable[[Any], None]] = {
            CompileConstraint: self._compile,
            CombineConstraints: self._combine,
            ConstrainToMask: self._constrain_to_mask,
            FreeConstraint: lambda command: state.constraints.free(command.constraint_id),
            MakeMask: lambda command: state.masks.add(command.mask_id, command.run_id),
            FreeMask: lambda command: state.masks.free(command.mask_id),
            OpenMatcher: self._open,
            MoveMatcher: self._move,
            ForkMatcher: self._fork,
            FreeMatcher: self._free,
        }

    def _compile(self, command: CompileConstraint) -> None:
        constraints = self._state.constraints
        error = constraints.compile(command.constraint_id, command.run_id, command.kind, command.text)
        self._state.answer(command.constraint_id, error)

    def _combine(self, command: CombineConstraints) -> None:
        constraints = self._state.constraints
        missing = [part for part in command.part_ids if not constraints.is_of(part, command.run_id)]
        if not missing:
            constraints.add(command.constraint_id, command.run_id)
        self._state.answer(command.constraint_id, _not_found(f"constraints {missing}") if missing else None)

    def _constrain_to_mask(self, command: ConstrainToMask) -> None:
        is_there = self._state.masks.is_of(command.mask_id, command.run_id)
        if is_there:
            self._state.constraints.add(command.constraint_id, command.run_id)
        self._state.answer(command.constraint_id, None if is_there else _not_found(f"mask {command.mask_id}"))

    def _open(self, command: OpenMatcher) -> None:
        if not self._state.constraints.is_of(command.constraint_id, command.run_id):
            self._state.answer(command.matcher_id, _not_found(f"constraint {command.constraint_id}"))
            return
        self._begin(command.matcher_id, command.run_id)

    def _move(self, command: MoveMatcher) -> None:
        if not self._state.matchers.is_of(command.matcher_id, command.run_id):
            self._state.answer(command.matcher_id, _not_found(f"matcher {command.matcher_id}"))
            return
        self._state.matcher_moves[command.matcher_id] += 1
        self._tell(command.matcher_id)

    def _fork(self, command: ForkMatcher) -> None:
        if not self._state.matchers.is_of(command.matcher_id, command.run_id):
            self._state.answer(command.child_id, _not_found(f"matcher {command.matcher_id}"))
            return
        self._begin(command.child_id, command.run_id)

    def _free(self, command: FreeMatcher) -> None:
        self._state.matchers.free(command.matcher_id)
        self._state.matcher_moves.pop(command.matcher_id, None)

    def _begin(self, matcher_id: int, run_id: int) -> None:
        self._state.matchers.add(matcher_id, run_id)
        self._state.matcher_moves[matcher_id] = 0
        self._tell(matcher_id)

    def _tell(self, matcher_id: int) -> None:
        size = self._state.info.vocabulary_size
        mask = ((1 << size) - 1).to_bytes(-(-size // 32) * 4, "little")
        moved = MatcherMoved(matcher_id, self._state.matcher_moves[matcher_id], mask, (), True, False)
        self._state.events.append(moved)


def _not_found(what: str) -> EngineError:
    return EngineError(ErrorCode.NOT_FOUND, f"the run does not have {what}")
