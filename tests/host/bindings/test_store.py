from typing import Any

import pytest

from tartlet import LimitExceededError, Limits, Variable, sync
from tartlet.testing import FakeEngine

pytestmark = pytest.mark.runner


def test_the_raw_interface(guest: Any) -> None:
    """Reads, writes, versions, conflicts and waits, as the contract spells them."""
    assert guest("""
        from wit_world.imports import store
        missing = store.get_variable("x")
        versions = [store.set_variable("x", "a"), store.append_variable("x", "b")]
        held = store.get_variable("x")
        lost = store.compare_and_swap_variable("x", "c", 1)
        won = store.compare_and_swap_variable("x", "c", 2)
        event = store.variable_above("x", 2)
        ready = events.poll([event], None) == [event]
        outcome = events.outcome(event)
        return [
            missing, versions, [held.version, held.value],
            [lost.written, lost.now.version, lost.now.value], [won.written, won.now.version, won.now.value],
            ready, outcome, [[each.name, each.version] for each in store.list_variables()],
        ]
    """) == [None, [1, 2], [2, "ab"], [False, 2, "ab"], [True, 3, "c"], True, None, [["x", 3]]]


def test_a_deadlock_is_an_outcome(guest: Any) -> None:
    """B13: the events of a wait that only the run could end are ready at once, with the error `deadlock`."""
    count, (code, message) = guest("""
        from wit_world.imports import store
        waits = [store.variable_above(name, 0) for name in ("x", "y")]
        return len(events.poll(waits, None)), refused(events.outcome, waits[1])
    """)

    assert (count, code) == (2, "DEADLOCK")
    assert "the variable 'x', a change of the variable 'y'" in message


PROGRAM = """
from tartlet_sdk import inferlet, variables

@inferlet
def main(n: int = 3, size: int = 1):
    print("a")
    for k in range(n):
        variables.append("x", str(k) * size)
    print("b")
"""


def test_the_caller_hears_of_writes() -> None:
    """Each comes as an event, in order with the text; variables of another run are others."""
    engine = FakeEngine()
    with sync.Host(engine=engine, spares=0) as host:
        for _ in range(2):
            run = host.start(PROGRAM)
            told = [event for event in run if isinstance(event, Variable)]
            assert told == [Variable("x", "0", 1), Variable("x", "01", 2), Variable("x", "012", 3)]
    engine.close()


def test_writes_count_as_output() -> None:
    """A program that writes more than the run may tell is ended by the output limit, with bounded memory."""
    engine = FakeEngine()
    with sync.Host(engine=engine, spares=0) as host, pytest.raises(LimitExceededError) as caught:
        host.run(PROGRAM, {"n": 1000, "size": 100}, limits=Limits(max_output_bytes=10_000))
    engine.close()

    assert caught.value.limit == "max_output_bytes"


def test_limits_say_what_is_used(guest: Any) -> None:
    """A program sees how much it may keep."""
    assert guest("""
        variables.set("x", "1234")
        limits = run.limits()
        return [limits["max_variables"].used, limits["max_variable_bytes"].used, limits["max_variables"].allowed]
    """) == [1, 5, 1024]
