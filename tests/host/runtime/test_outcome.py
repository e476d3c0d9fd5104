import pytest

from tartlet.errors import DeadlockError, GuestError, GuestTrapError, LimitExceededError, memory_limit_error
from tartlet.limits import Limits
from tartlet.runtime.outcome import MAX_LAST_WORDS, read_outcome

TRACEBACK = 'Traceback (most recent call last):\n  File "main.py", line 3, in main\nMemoryError\n'


def test_what_the_program_returned() -> None:
    """An ok result is the outcome as it is."""
    assert read_outcome((True, '{"a": 1}'), Limits()) == '{"a": 1}'


def test_an_error_of_the_host_is_the_outcome() -> None:
    """A fiber that was ended with an error ends the run with exactly that."""
    error = DeadlockError("stuck")

    assert read_outcome(error, Limits()) is error


def test_the_programs_own_error_keeps_its_text() -> None:
    """An err result is a guest error with the traceback that the program gave."""
    outcome = read_outcome((False, "Traceback ...\nValueError: no\n"), Limits())

    assert isinstance(outcome, GuestError)
    assert outcome.message == "Traceback ...\nValueError: no"


@pytest.mark.parametrize("last_line", ["MemoryError", "MemoryError: cannot allocate"])
def test_a_memory_error_names_the_limit(last_line: str) -> None:
    """A Python program that ran out of memory ends with the memory limit, and its traceback in the message."""
    text = TRACEBACK.replace("MemoryError", last_line)

    outcome = read_outcome((False, text), Limits(max_memory_bytes=64 << 20))

    assert isinstance(outcome, LimitExceededError)
    assert (outcome.code, outcome.limit, outcome.allowed) == ("memory_limit", "max_memory_bytes", 64 << 20)
    assert "line 3, in main" in outcome.message
    assert outcome.hint.startswith("Allow more")


def test_a_memory_error_in_passing_is_the_programs_own() -> None:
    """A text that only mentions a memory error is a guest error."""
    outcome = read_outcome((False, f"{TRACEBACK}\nDuring handling: ValueError: x"), Limits())

    assert isinstance(outcome, GuestError)


def test_a_trap_is_told_with_what_the_program_said_last() -> None:
    """What it logged before it aborted comes first, bounded; any other end stands for itself."""
    trap = GuestTrapError("the program aborted itself\n  at main!run", hint="a hint")

    outcome = read_outcome(trap, Limits(), "main.c:3: no")

    assert isinstance(outcome, GuestTrapError)
    assert outcome.message == "main.c:3: no\nthe program aborted itself\n  at main!run"
    assert outcome.hint == "a hint"
    assert len(str(read_outcome(trap, Limits(), "x" * 10**6))) < MAX_LAST_WORDS + 100
    assert read_outcome(trap, Limits(), None) is trap
    assert read_outcome((True, "1"), Limits(), "main.c:3: no") == "1"


def test_what_a_program_said_when_its_memory_was_full_is_told() -> None:
    """Below the numbers of the limit."""
    limit = memory_limit_error(used=100, allowed=100, details="It ended with: a trap")

    outcome = read_outcome(limit, Limits(), "main.c:3: no memory is left")

    assert isinstance(outcome, LimitExceededError)
    assert outcome.code == "memory_limit"
    assert outcome.message == (
        "max_memory_bytes allows 100, used 100\nmain.c:3: no memory is left\nIt ended with: a trap"
    )
