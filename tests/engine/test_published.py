"""Published prefixes: computed once, found by every tenant, pinned, and gone when they are unpublished."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tartlet_engine.api import Done, ErrorCode

HashText = Callable[[Sequence[int], int], list[int]]
PREFIX = list(range(20, 42))  # 22 tokens: five full pages of four, and a half


def generate(driver: Any, tenant: str, prompt: Sequence[int], count: int = 1) -> tuple[list[int], int]:
    """Run one generation in a run of its own to its end. Returns its tokens and its cached tokens."""
    run_id = driver.open_run(tenant=tenant)
    generation = driver.generate(driver.create(run_id, prompt), max_tokens=count)
    driver.settle()
    driver.close_run(run_id)
    return driver.tokens(generation), driver.finished(generation).usage.cached_tokens


def test_every_tenant_finds_what_is_published(hash_engine: Any, hash_text: HashText) -> None:
    """Its full pages are computed once and held; what comes after them in a prompt stays its tenant's own."""
    driver = hash_engine()
    prefix = driver.publish(PREFIX)
    driver.settle()
    assert driver.is_done(prefix)
    assert (driver.num_held, driver.core.stats().contexts, driver.runner.num_computed_tokens) == (5, 0, 20)

    prompt = [*PREFIX, *range(100, 110)]
    outputs = [generate(driver, tenant, prompt, 3) for tenant in ("a", "b", "a", "b")]
    assert [tokens for tokens, _ in outputs] == [hash_text(prompt, 3)] * 4
    assert [cached for _, cached in outputs] == [20, 20, 31, 31]


def test_a_published_prefix_is_never_dropped(hash_engine: Any) -> None:
    """However many pages others need, it is still found; they can have all of the rest."""
    driver = hash_engine(num_pages=12)
    driver.publish(PREFIX)
    driver.settle()
    for number in range(20):
        generate(driver, "a", [number] * 26)
    assert generate(driver, "b", PREFIX)[1] == 20
    waiting = driver.create(driver.open_run(), [9] * 28)
    operation = driver.flush(waiting)
    driver.settle()

    assert driver.is_done(operation)


def test_what_is_unpublished_is_not_found_any_more(hash_engine: Any, hash_text: HashText) -> None:
    """Those who hold its pages go on with them; everybody else computes them, and keeps them to themselves."""
    driver = hash_engine()
    prefix = driver.publish(PREFIX)
    driver.settle()
    holder = driver.generate(driver.create(driver.open_run(tenant="a"), PREFIX), max_tokens=20)
    driver.step(3)
    driver.unpublish(prefix)
    driver.unpublish(prefix)
    outputs = [generate(driver, tenant, PREFIX, 2) for tenant in ("b", "c", "b")]
    driver.settle()

    assert driver.tokens(holder) == hash_text(PREFIX, 20)
    assert outputs == [(hash_text(PREFIX, 2), 0), (hash_text(PREFIX, 2), 0), (hash_text(PREFIX, 2), 20)]


def test_prefixes_that_begin_alike(hash_engine: Any) -> None:
    """They share what they have in common; unpublishing one leaves the other whole."""
    driver = hash_engine()
    other = [*PREFIX[:12], *range(200, 208)]
    prefixes = [driver.publish(tokens) for tokens in (PREFIX, other, other)]
    driver.settle()
    assert driver.num_held == 5 + 2
    driver.unpublish(prefixes[0])
    driver.unpublish(prefixes[2])

    assert (driver.num_held, driver.core.stats().pages_cached) == (5, 0)
    assert generate(driver, "a", [*other, 7])[1] == 20
    assert generate(driver, "b", PREFIX)[1] == 12


def test_it_is_held_as_soon_as_it_is_computed(hash_engine: Any) -> None:
    """What makes room for itself in the very step that has computed a prefix finds nobody to take its pages from."""
    driver = hash_engine(num_pages=12)
    run_id = driver.open_run()
    context = driver.create(run_id, range(100, 140))
    driver.save(context)
    driver.settle()
    driver.free(context)
    opening, _ = driver.open_saved(run_id)
    while not driver.core.saves.has_work:
        time.sleep(0.001)
    prefix = driver.publish(PREFIX)
    driver.step()

    assert driver.is_done(prefix)
    assert driver.opened(opening).token_ids == tuple(range(100, 140))
    assert generate(driver, "b", PREFIX)[1] == 20


def test_unpublished_while_it_is_computed(hash_engine: Any) -> None:
    """Publishing fails as cancelled, and nothing is left."""
    driver = hash_engine(max_batch_tokens=8)
    prefix = driver.publish(PREFIX)
    driver.step()
    driver.unpublish(prefix)
    driver.settle()

    assert driver.failure(prefix).code == ErrorCode.CANCELLED
    assert driver.num_held == driver.core.stats().pages_cached == driver.core.stats().contexts == 0


def test_a_failing_step_fails_what_is_being_published(hash_engine: Any) -> None:
    """Its number can be used again, and then it works."""
    driver = hash_engine()
    driver.runner.failures = 1
    prefix = driver.publish(PREFIX)
    driver.settle()
    assert driver.failure(prefix).code == ErrorCode.INTERNAL
    assert generate(driver, "a", PREFIX)[1] == 0
    again = driver.publish(PREFIX)
    driver.settle()

    assert Done(again) in driver.events


@pytest.mark.parametrize(
    ("tokens", "code"),
    [
        ([1, 2, 3], ErrorCode.INVALID_ARGUMENT),
        ([1, 2, 3, 512], ErrorCode.INVALID_ARGUMENT),
        (range(4 * 33), ErrorCode.KV_EXHAUSTED),
        (range(100), ErrorCode.CONTEXT_OVERFLOW),
    ],
)
def test_what_cannot_be_published(hash_engine: Any, tokens: Sequence[int], code: ErrorCode) -> None:
    """Less than a page, an unknown token, more than half of the pool, or than the context length: each by its code."""
    driver = hash_engine(num_pages=64, context_len=99)
    prefix = driver.publish(tokens)

    assert driver.failure(prefix).code == code
    assert driver.num_held == driver.core.stats().contexts == 0


def test_without_a_cache_nothing_can_be_published(hash_engine: Any) -> None:
    """It is refused as unsupported, rather than held for nothing."""
    driver = hash_engine(prefix_cache=False)

    assert driver.failure(driver.publish(PREFIX)).code == ErrorCode.UNSUPPORTED


def test_no_tenant_is_the_operator(hash_engine: Any) -> None:
    """A run with an empty tenant could put pages where all others look; it is refused."""
    driver = hash_engine()
    run_id = driver.open_run(tenant="")

    assert driver.failure(run_id).code == ErrorCode.INVALID_ARGUMENT
