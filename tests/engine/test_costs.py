"""What swapping and computing cost, and which is cheaper."""

from __future__ import annotations

import pytest

from tartlet_engine.costs import Costs, FixedCosts


def test_both_ways_of_a_copy_are_set_against_computing() -> None:
    """A page goes out and comes in, so it counts twice."""
    costs = Costs(seconds_per_byte=1.0, seconds_per_token=10.0)

    assert costs.is_swap_cheaper(num_bytes=49, num_tokens=10)
    assert not costs.is_swap_cheaper(num_bytes=50, num_tokens=10)


def test_measurements_move_the_averages() -> None:
    """What is measured again and again becomes the cost; small steps and empty copies say nothing."""
    costs = Costs(seconds_per_byte=1.0, seconds_per_token=1.0)
    costs.note_step(num_tokens=4, seconds=400.0)
    costs.note_copy(num_bytes=0, seconds=5.0)
    assert (costs.seconds_per_byte, costs.seconds_per_token) == (1.0, 1.0)
    for _ in range(60):
        costs.note_step(num_tokens=100, seconds=300.0)
        costs.note_copy(num_bytes=10, seconds=5.0)

    assert costs.seconds_per_token == pytest.approx(3.0, rel=1e-3)
    assert costs.seconds_per_byte == pytest.approx(0.5, rel=1e-3)


def test_fixed_costs_stay() -> None:
    """What is fixed is not measured."""
    costs = FixedCosts(seconds_per_byte=1.0, seconds_per_token=1.0)
    costs.note_step(num_tokens=100, seconds=300.0)
    costs.note_copy(num_bytes=10, seconds=5.0)

    assert (costs.seconds_per_byte, costs.seconds_per_token) == (1.0, 1.0)
