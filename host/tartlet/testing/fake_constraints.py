"""The constraints of the fake engine: their texts are looked at, but nothing is masked."""

from __future__ import annotations

import json
import re
from collections.abc import Container

from tartlet_engine.api import ConstraintKind, EngineError, ErrorCode


class FakeConstraints:
    """Constraints of all runs. A reply under one is the script's, whatever the constraint says."""

    def __init__(self) -> None:
        self._run_ids: dict[int, int] = {}  # by constraint

    def compile(self, constraint_id: int, run_id: int, kind: ConstraintKind, text: str) -> EngineError | None:
        """Keep a constraint of a run, or say what is wrong with its text."""
        try:
            if kind is ConstraintKind.REGEX:
                re.compile(text)
            elif kind in (ConstraintKind.JSON_SCHEMA, ConstraintKind.CHOICES, ConstraintKind.TOKENS):
                json.loads(text)
        except (re.error, ValueError) as error:
            return EngineError(ErrorCode.INVALID_ARGUMENT, f"the {kind.value} cannot be used: {error}")
        self._run_ids[constraint_id] = run_id
        return None

    def is_of(self, constraint_id: int, run_id: int) -> bool:
        """Whether the run has that constraint."""
        return self._run_ids.get(constraint_id) == run_id

    def free(self, constraint_id: int) -> None:
        """Forget a constraint."""
        self._run_ids.pop(constraint_id, None)

    def close_run(self, run_id: int) -> None:
        """Forget the constraints of a run."""
        self._run_ids = {constraint: run for constraint, run in self._run_ids.items() if run != run_id}

    def check(self, run_ids: Container[int]) -> None:
        """Raise AssertionError if a constraint has outlived its run."""
        assert all(run_id in run_ids for run_id in self._run_ids.values())
