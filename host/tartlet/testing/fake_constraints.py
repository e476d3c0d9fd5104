"""The constraints of the fake engine: their texts are looked at, but nothing is masked."""

from __future__ import annotations

import json
import re
from collections.abc import Container

from tartlet_engine.api import ConstraintKind, EngineError, ErrorCode


class FakeBelongings:
    """Things of runs, by their ids: masks, matchers."""

    def __init__(self) -> None:
        self._run_ids: dict[int, int] = {}  # by thing

    def add(self, thing_id: int, run_id: int) -> None:
        """Note that the run has it."""
        self._run_ids[thing_id] = run_id

    def is_of(self, thing_id: int, run_id: int) -> bool:
        """Whether the run has it."""
        return self._run_ids.get(thing_id) == run_id

    def free(self, thing_id: int) -> None:
        """Forget it."""
        self._run_ids.pop(thing_id, None)

    def close_run(self, run_id: int) -> None:
        """Forget all that a run has."""
        self._run_ids = {thing: run for thing, run in self._run_ids.items() if run != run_id}

    def check(self, run_ids: Container[int]) -> None:
        """Raise AssertionError if something has outlived its run."""
        assert all(run_id in run_ids for run_id in self._run_ids.values())


class FakeConstraints(FakeBelongings):
    """Constraints of all runs. A reply under one is the script's, whatever the constraint says."""

    def compile(self, constraint_id: int, run_id: int, kind: ConstraintKind, text: str) -> EngineError | None:
        """Keep a constraint of a run, or say what is wrong with its text."""
        try:
            if kind is ConstraintKind.REGEX:
                re.compile(text)
            elif kind in (ConstraintKind.JSON_SCHEMA, ConstraintKind.CHOICES, ConstraintKind.TOKENS):
                json.loads(text)
        except (re.error, ValueError) as error:
            return EngineError(ErrorCode.INVALID_ARGUMENT, f"the {kind.value} cannot be used: {error}")
        self.add(constraint_id, run_id)
        return None
