from __future__ import annotations

from tartlet.server.front.processes.backoff import Backoff


def test_each_wait_is_twice_as_long_up_to_a_most() -> None:
    """Who has lived long begins anew."""
    backoff = Backoff(first_s=1, most_s=5, steady_s=60, draw=lambda: 1.0)

    assert [backoff.wait_s(0) for _ in range(5)] == [1, 2, 4, 5, 5]
    assert [backoff.wait_s(lived_s) for lived_s in (60, 59)] == [1, 2]


def test_a_wait_is_drawn() -> None:
    """Between half of it and all of it."""
    assert Backoff(first_s=1, draw=lambda: 0.0).wait_s(0) == 0.5
    waits = {Backoff(first_s=1).wait_s(0) for _ in range(20)}
    assert len(waits) > 1
    assert all(0.5 <= wait_s <= 1 for wait_s in waits)
