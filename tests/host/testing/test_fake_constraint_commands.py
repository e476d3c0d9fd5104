from tartlet.testing.fake_constraint_commands import FakeConstraintCommands
from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import CompileConstraint, ConstraintKind, Done, ErrorCode, Failed, FreeConstraint


def test_a_constraint_is_the_runs_until_it_is_freed(state: FakeState) -> None:
    """A text that can be read gives a constraint; one that cannot is refused."""
    handlers = FakeConstraintCommands(state).handlers

    handlers[CompileConstraint](CompileConstraint(5, 1, ConstraintKind.REGEX, "a+"))
    handlers[CompileConstraint](CompileConstraint(6, 1, ConstraintKind.REGEX, "("))

    assert state.constraints.is_of(5, 1)
    assert not state.constraints.is_of(6, 1)
    done, failed = state.events
    assert done == Done(5)
    assert isinstance(failed, Failed)
    assert failed.error.code is ErrorCode.INVALID_ARGUMENT
    handlers[FreeConstraint](FreeConstraint(5, 1))
    assert not state.constraints.is_of(5, 1)
