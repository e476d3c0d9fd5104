"""The constraints of the fake engine."""

from __future__ import annotations

import pytest

from tartlet.testing.fake_constraints import FakeConstraints
from tartlet_engine.api import ConstraintKind, EngineError


@pytest.mark.parametrize(
    ("kind", "good", "bad"), [(ConstraintKind.REGEX, "a+", "("), (ConstraintKind.JSON_SCHEMA, "{}", "{")]
)
def test_texts_are_looked_at(kind: ConstraintKind, good: str, bad: str) -> None:
    """What no regular expression or no JSON is, is an error, and there is no such constraint."""
    constraints = FakeConstraints()

    assert constraints.compile(1, 10, kind, good) is None
    assert isinstance(constraints.compile(2, 10, kind, bad), EngineError)
    assert constraints.is_of(1, 10)
    assert not constraints.is_of(2, 10)


def test_constraints_belong_to_runs() -> None:
    """One is of its run until it is freed or the run is closed; none outlives it."""
    constraints = FakeConstraints()
    for number, run_id in ((1, 10), (2, 10), (3, 20)):
        constraints.compile(number, run_id, ConstraintKind.LARK, "start: x")
    constraints.free(1)
    assert [constraints.is_of(number, 10) for number in (1, 2, 3)] == [False, True, False]
    constraints.close_run(10)

    assert not constraints.is_of(2, 10)
    constraints.check({20})
    with pytest.raises(AssertionError):
        constraints.check(set())
