"""The state of a stepped generation: marks in its text."""

from __future__ import annotations

from tartlet_engine.stepping.state import StepState
from tartlet_engine.stop import TextState


def text_state(name: str) -> TextState:
    return TextState((name.encode(), 0), ((), ""))


def test_it_goes_back_to_the_mark_of_a_length() -> None:
    """Characters after the mark are counted, and the state is the one that was noted there."""
    state = StepState(10, text_state("begin"))
    for text in ("ab", "", "cde"):
        state.note(text, text_state(text))

    assert state.go_back(12) == (text_state(""), 3)
    assert state.go_back(11) == (text_state("ab"), 0)
    assert state.first_token == 10


def test_before_its_beginning_there_is_only_one_state() -> None:
    """Going back into the prompt begins anew there."""
    state = StepState(10, text_state("begin"))
    state.note("ab", text_state("ab"))

    assert state.go_back(4) == (text_state("begin"), 2)
    assert state.first_token == 4
    state.note("x", text_state("x"))
    assert state.go_back(4) == (text_state("begin"), 1)


def test_a_fork_goes_on_by_itself() -> None:
    """Marks of the fork are no marks of its parent."""
    state = StepState(10, text_state("begin"))
    state.note("ab", text_state("ab"))
    fork = state.fork()
    fork.note("c", text_state("c"))

    assert fork.go_back(10) == (text_state("begin"), 3)
    assert state.go_back(10) == (text_state("begin"), 2)
