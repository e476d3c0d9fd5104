"""Things queued by tenant and run: turns between all, order within each, nothing lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet_engine.fair_queue import FairQueue

Item = tuple[str, int, int]  # tenant, run, number
TENANTS = {1: "a", 2: "a", 3: "b", 4: "c"}


def filled(*counts: tuple[int, int]) -> FairQueue[Item]:
    """A queue with so many things of each run."""
    queue: FairQueue[Item] = FairQueue()
    for run, count in counts:
        for number in range(count):
            queue.add(TENANTS[run], run, (TENANTS[run], run, number))
    return queue


def test_tenants_take_turns_then_their_runs() -> None:
    """One thing of each tenant in turn, however much one has queued; within a tenant one of each run."""
    queue = filled((1, 5), (2, 2), (3, 3))
    taken = [queue.take() for _ in range(10)]

    assert [tenant for tenant, _, _ in taken] == ["a", "b"] * 3 + ["a"] * 4
    assert [(run, number) for tenant, run, number in taken if tenant == "a"] == [
        (1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (1, 3), (1, 4)
    ]  # fmt: skip
    with pytest.raises(IndexError):
        queue.take()


def test_what_is_put_back_comes_first_of_its_run() -> None:
    """Something that takes many turns keeps its place before the rest of its run, and lets others have theirs."""
    queue = filled((1, 2), (3, 1))
    first = queue.take()
    queue.put_back("a", 1, first)

    assert [queue.take() for _ in range(3)] == [("b", 3, 0), ("a", 1, 0), ("a", 1, 1)]


def test_dropping_a_run() -> None:
    """All that one run has queued goes, and nothing else."""
    queue = filled((1, 3), (2, 1), (3, 1))
    queue.drop("a", 1)
    queue.drop("b", 3)
    queue.drop("c", 4)

    assert len(queue) == 1
    assert list(queue) == [("a", 2, 0)]
    assert queue.take() == ("a", 2, 0)
    assert queue.num_tenants == 0


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(("add", "drop")), st.sampled_from(sorted(TENANTS))),
            st.tuples(st.sampled_from(("take", "put back")), st.just(0)),
        ),
        max_size=80,
    )
)
def test_any_history(actions: list[tuple[str, int]]) -> None:
    """Each run's things come in order, nothing is lost or comes twice, and nobody has two turns while others wait."""
    queue: FairQueue[Item] = FairQueue()
    waiting: dict[int, list[Item]] = {run: [] for run in TENANTS}
    had_turns: dict[str, set[str]] = {}  # by tenant that waits: who has had a turn since
    for number, (action, run) in enumerate(actions):
        if action == "add":
            item = (TENANTS[run], run, number)
            queue.add(TENANTS[run], run, item)
            waiting[run].append(item)
        elif action == "drop":
            queue.drop(TENANTS[run], run)
            waiting[run].clear()
        elif any(waiting.values()):
            item = queue.take()
            assert item == waiting[item[1]].pop(0)
            assert not any(item[0] in others for tenant, others in had_turns.items() if tenant != item[0])
            del had_turns[item[0]]
            for others in had_turns.values():
                others.add(item[0])
            if action == "put back":
                queue.put_back(item[0], item[1], item)
                waiting[item[1]].insert(0, item)
        tenants = {TENANTS[run] for run, items in waiting.items() if items}
        had_turns = {tenant: had_turns.get(tenant, set()) for tenant in tenants}
        assert len(queue) == sum(map(len, waiting.values())) == len(list(queue))
        assert queue.num_tenants == len(tenants)
