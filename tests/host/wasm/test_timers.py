"""Timers: a heap of deadlines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tartlet.wasm.timers import Timers


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=300), st.integers(0, 50))
def test_due_timers_come_in_order(settings: list[tuple[int, bool]], now: int) -> None:
    """All timers that are due and not cancelled come, by deadline and then by age; the others stay."""
    timers = Timers()
    seen: list[tuple[int, int]] = []
    made = [
        timers.at(deadline, lambda i=i, deadline=deadline: seen.append((deadline, i)))
        for i, (deadline, _) in enumerate(settings)
    ]
    for timer, (_, is_cancelled) in zip(made, settings, strict=True):
        if is_cancelled:
            timer.cancel()

    while (action := timers.pop_due(now)) is not None:
        action()

    kept = [(deadline, i) for i, (deadline, is_cancelled) in enumerate(settings) if not is_cancelled]
    assert seen == sorted(one for one in kept if one[0] <= now)
    assert len(timers) == len([one for one in kept if one[0] > now])


def test_cancelled_timers_are_swept_out() -> None:
    """Timers that are cancelled long before their time do not pile up."""
    timers = Timers()
    for _ in range(10_000):
        timers.at(1 << 60, lambda: None).cancel()

    assert len(timers) == 0
    assert len(timers._heap) < 200


def test_cancelling_twice_or_late() -> None:
    """Cancelling a timer again, or one that has run, has no effect."""
    timers = Timers()
    timer = timers.at(1, lambda: None)
    timers.at(2, lambda: None)
    assert timers.pop_due(1) is not None
    timer.cancel()
    timer.cancel()

    assert len(timers) == 1
    assert timers.next_deadline_ns == 2
