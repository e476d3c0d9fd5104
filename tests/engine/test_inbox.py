"""Commands that wait: in order within a run, by turns between tenants and runs, and none left of a run that ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tartlet_engine.api import CloseRun, Command, Fence, FreeContext, OpenRun
from tartlet_engine.inbox import Inbox


def taken(inbox: Inbox) -> list[Command]:
    """All that waits, in the order in which it would be carried out."""
    return [inbox.take().command for _ in range(len(inbox))]


def test_a_neighbour_waits_for_one_command_at_a_time() -> None:
    """Behind hundreds of another tenant's commands, those of a neighbour come every second turn, in order."""
    inbox = Inbox()
    inbox.add([OpenRun(1, "storm"), *(FreeContext(number) for number in range(500))], 1, 0)
    inbox.add([OpenRun(2, "calm"), FreeContext(1000), FreeContext(1001)], 2, 0)
    commands = taken(inbox)

    assert [commands.index(FreeContext(number)) for number in (1000, 1001)] == [3, 5]
    assert commands[6:] == [FreeContext(number) for number in range(2, 500)]


def test_runs_of_one_tenant_share_its_turns() -> None:
    """A tenant gets no more turns by having more runs."""
    inbox = Inbox()
    for run_id in range(1, 11):
        inbox.add([OpenRun(run_id, "many"), FreeContext(run_id)], run_id, 0)
    inbox.add([OpenRun(11, "one"), FreeContext(11), Fence(12, 11)], 11, 0)

    assert taken(inbox).index(Fence(12, 11)) == 5


def test_what_concerns_no_run_comes_first() -> None:
    """An operator does not wait for programs."""
    inbox = Inbox()
    inbox.add([OpenRun(1, "a"), FreeContext(1)], 1, 0)
    inbox.add([FreeContext(2), FreeContext(3)], None, 5)
    first = inbox.take()

    assert (first.command, first.arrived_ns, first.tenant) == (FreeContext(2), 5, None)
    assert taken(inbox) == [FreeContext(3), OpenRun(1, "a"), FreeContext(1)]


def test_a_run_that_ends_leaves_only_its_end() -> None:
    """Its commands that wait are dropped, those of others are not; another run may come after it."""
    inbox = Inbox()
    inbox.add([OpenRun(1, "a")], 1, 0)
    inbox.take()
    inbox.add([FreeContext(number) for number in range(500)], 1, 0)
    inbox.add([OpenRun(2, "a"), FreeContext(7)], 2, 0)
    inbox.add([CloseRun(1)], 1, 0)

    assert len(inbox) == 3
    assert inbox.num_tenants == 1
    assert sorted(map(str, taken(inbox))) == sorted(map(str, [CloseRun(1), OpenRun(2, "a"), FreeContext(7)]))


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), max_size=30), st.integers(0, 10))
def test_any_submissions(batches: list[tuple[int, int]], num_early: int) -> None:
    """Each run's commands come in order and once, however they were submitted and whatever was taken in between."""
    inbox, found = Inbox(), []
    expected: dict[int, list[Command]] = {}
    number = 0
    for run_id, count in batches:
        commands: list[Command] = [] if run_id in expected else [OpenRun(run_id, "abc"[run_id % 3])]
        commands += [FreeContext(number := number + 1) for _ in range(count)]
        expected.setdefault(run_id, []).extend(commands)
        inbox.add(commands, run_id, run_id)
        found += [inbox.take() for _ in range(min(num_early, len(inbox)))]
    found += [inbox.take() for _ in range(len(inbox))]

    by_run = {run_id: [each.command for each in found if each.arrived_ns == run_id] for run_id in expected}
    assert by_run == expected
    assert all(each.tenant == "abc"[each.arrived_ns % 3] for each in found)
