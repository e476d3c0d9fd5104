"""Demands: every generation and flush ends exactly once."""

from __future__ import annotations

from typing import Any

from tartlet_engine.api import Chunk, Done, Failed, Finished, FinishReason


def test_flushes_end_in_order_and_once(hash_engine: Any) -> None:
    """Flushes of one context are answered as their tokens are computed, also when tokens came in between."""
    driver = hash_engine(max_batch_tokens=4)
    context = driver.create(driver.open_run(), range(6))
    first = driver.flush(context)
    driver.append(context, range(6))
    second = driver.flush(context)
    driver.step(2)
    assert [driver.is_done(first), driver.is_done(second)] == [True, False]
    driver.settle()

    assert driver.events == [Done(first), Done(second)]


def test_truncate_meets_a_flush(hash_engine: Any) -> None:
    """If what a flush still waits for is dropped, it is done."""
    driver = hash_engine(max_batch_tokens=4)
    context = driver.create(driver.open_run(), range(10))
    operation = driver.flush(context)
    driver.step()
    driver.truncate(context, 3)

    assert driver.is_done(operation)
    assert not driver.core.has_work


def test_a_flush_and_a_generation_on_one_context(hash_engine: Any) -> None:
    """A generation may begin while a flush is under way; both end."""
    driver = hash_engine(max_batch_tokens=4)
    context = driver.create(driver.open_run(), range(10))
    operation = driver.flush(context)
    generation = driver.generate(context, max_tokens=2)
    driver.settle()

    assert driver.is_done(operation)
    assert len(driver.tokens(generation)) == 2


def test_a_failure_ends_all_that_waits_for_a_sequence(hash_engine: Any) -> None:
    """Flush and generation on the failed sequence get one `Failed` each, and nothing more."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), range(10))
    operation = driver.flush(context)
    generation = driver.generate(context)
    driver.runner.failures = 1
    driver.settle()

    assert [type(event) for event in driver.events] == [Failed, Failed]
    assert {event.failed_id for event in driver.events} == {operation, generation}


def test_cancel_after_the_end_is_ignored(hash_engine: Any) -> None:
    """`Finished` comes once, whatever comes after it."""
    driver = hash_engine()
    generation = driver.generate(driver.create(driver.open_run(), [5]), max_tokens=1)
    driver.settle()
    driver.cancel(generation)
    driver.cancel(generation)

    assert [type(event) for event in driver.events] == [Chunk, Finished]
    assert driver.finished(generation).reason == FinishReason.LENGTH
