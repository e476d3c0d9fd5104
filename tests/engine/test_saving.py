"""Saving contexts: what is kept is what was there when it was asked for, and what cannot be kept is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tartlet_engine.api import ErrorCode
from tartlet_engine.saved_contexts import SavedContexts

PROMPT = list(range(10, 33))


def test_an_empty_context_can_be_saved(hash_engine: Any) -> None:
    """It comes back empty."""
    driver = hash_engine()
    run = driver.open_run()
    driver.save(driver.create(run))
    driver.settle()
    opening, opened = driver.open_saved(run)
    driver.settle()
    driver.append(opened, PROMPT)
    driver.flush(opened)
    driver.settle()

    assert driver.opened(opening).token_ids == ()
    assert driver.failures == []


def test_what_is_asked_afterwards_does_not_concern_what_is_saved(
    hash_engine: Any, hash_text: Callable[..., list[int]]
) -> None:
    """A save holds the tokens of its moment, whether the context is then extended, cut or freed."""
    driver = hash_engine(num_pages=100)
    run = driver.open_run()
    contexts = [driver.create(run, PROMPT) for _ in range(3)]
    for index, context in enumerate(contexts):
        driver.save(context, f"saved-{index}")
    driver.append(contexts[0], [40, 41])
    driver.truncate(contexts[1], 5)
    driver.free(contexts[2])
    driver.settle()
    for index in range(3):
        opening, opened = driver.open_saved(run, f"saved-{index}")
        driver.settle()
        generation = driver.generate(opened, max_tokens=5)
        driver.settle()
        assert driver.opened(opening).token_ids == tuple(PROMPT)
        assert driver.tokens(generation) == hash_text(PROMPT, 5)
    generation = driver.generate(contexts[1], max_tokens=5)
    driver.settle()

    assert driver.tokens(generation) == hash_text(PROMPT[:5], 5)
    assert driver.failures == []


@pytest.mark.parametrize("options", [{"ttl_ms": 0}, {"ttl_ms": -5}, {"ttl_ms": 2**60}, {"host_state": "x" * (1 << 21)}])
def test_bad_options_are_refused(hash_engine: Any, options: dict[str, Any]) -> None:
    """Times and notes out of their ranges are refused."""
    driver = hash_engine()
    saving = driver.save(driver.create(driver.open_run(), PROMPT), **options)

    assert driver.failure(saving).code is ErrorCode.INVALID_ARGUMENT


def test_refusals_of_the_store_reach_the_program(hash_engine: Any) -> None:
    """Taken names and full quotas fail the save alone."""
    driver = hash_engine(saved=SavedContexts("hash", max_bytes=400))
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    first, second = driver.save(context), driver.save(context)
    driver.settle()
    big = driver.save(driver.create(run, PROMPT * 8), "big")
    driver.settle()

    assert driver.failure(first if not driver.is_done(first) else second).code is (
        ErrorCode.QUOTA_EXCEEDED if not driver.is_done(first) else ErrorCode.ALREADY_EXISTS
    )
    assert driver.failure(big).code is ErrorCode.QUOTA_EXCEEDED


def test_a_save_whose_tokens_cannot_be_computed(hash_engine: Any) -> None:
    """If the model fails, the save fails, once, and what it held is freed."""
    driver = hash_engine()
    run = driver.open_run()
    saving = driver.save(driver.create(run, PROMPT))
    driver.runner.failures = 2  # of the context, and of the fork that then tries itself
    driver.settle()

    assert driver.failure(saving).code is ErrorCode.INTERNAL
    assert driver.core.stats().contexts == 1
