"""Copying pages between steps: some at a time, so that others go on, and nothing is left of what ends or fails."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_engine import transfers
from tartlet_engine.api import ErrorCode

PROMPT = list(range(10, 33))


@pytest.mark.parametrize("method", ["read_pages", "write_pages"])
def test_a_copy_that_fails(hash_engine: Any, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """If pages cannot be read or written, that operation fails, and a neighbour goes on."""
    driver = hash_engine()
    run = driver.open_run()
    driver.save(driver.create(run, PROMPT))
    if method == "write_pages":
        driver.settle()

    def fail(*args: Any) -> Any:
        raise ValueError("broken")

    monkeypatch.setattr(driver.runner, method, fail)
    driver.open_saved(run)
    neighbour = driver.generate(driver.create(run, PROMPT), max_tokens=5)
    driver.settle()

    assert len(driver.tokens(neighbour)) == 5
    assert {failed.error.code for failed in driver.failures} <= {ErrorCode.INTERNAL, ErrorCode.NOT_FOUND}
    assert driver.failures


def test_others_go_on_while_pages_are_copied(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving and opening copy a bounded number of pages between two steps, in which others get their tokens."""
    monkeypatch.setattr(transfers, "TRANSFER_BYTES", 1)
    driver = hash_engine(num_pages=200)
    run = driver.open_run()
    long = driver.create(run, PROMPT * 4)
    driver.flush(long)
    driver.settle()
    neighbour = driver.generate(driver.create(run, PROMPT), max_tokens=100)
    saving = driver.save(long)
    driver.step(20)

    assert not driver.is_done(saving)
    assert len(driver.tokens(neighbour)) >= 19
    driver.settle()
    assert driver.is_done(saving)


@pytest.mark.parametrize("num_steps", range(8))
def test_a_run_that_ends_while_it_saves_and_opens(
    hash_engine: Any, monkeypatch: pytest.MonkeyPatch, num_steps: int
) -> None:
    """Whenever it ends: nothing of it is left, no event follows, and what was saved is whole or not there."""
    monkeypatch.setattr(transfers, "TRANSFER_BYTES", 1)  # a page a step
    driver = hash_engine(max_batch_tokens=12)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.save(context, "before")
    driver.settle()
    driver.save(driver.create(run, PROMPT[::-1]), "during")
    driver.open_saved(run, "before")
    driver.step(num_steps)
    driver.close_run(run)
    driver.events.clear()
    driver.settle()
    events = list(driver.events)
    other = driver.open_run()
    opening, _ = driver.open_saved(other, "during")
    driver.settle()

    assert events == []
    assert driver.core.stats().contexts == (0 if driver.failures else 1)
    if not driver.failures:
        assert driver.opened(opening).token_ids == tuple(PROMPT[::-1])
    driver.close_run(other)
    assert driver.num_held == 0
