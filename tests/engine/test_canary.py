"""Two tenants on a full cache: whatever becomes of pages, no token of one ever depends on the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tartlet_engine.api import ErrorCode, Finished

HashText = Callable[[Sequence[int], int], list[int]]

NUM_PAGES = 20
PREFIX = list(range(20, 33))  # both tenants begin with it, and it is published now and then


class Churn:
    """Generations of two tenants, whose prompts hold a canary each, on contexts that are cut, forked and freed."""

    def __init__(self, driver: Any, numbers: random.Random) -> None:
        self.driver = driver
        self.numbers = numbers
        self.runs = {canary: driver.open_run(tenant=tenant) for canary, tenant in ((500, "a"), (501, "b"))}
        self.running: dict[int, tuple[int, int, list[int]]] = {}  # generation -> context, canary, prompt
        self.idle: dict[int, tuple[int, list[int]]] = {}  # context -> canary, tokens
        self.published: list[int] = []
        self.num_cached_tokens = 0

    def begin(self) -> None:
        """Begin a generation, on a new context or on what is left of one."""
        numbers, driver = self.numbers, self.driver
        if self.idle and numbers.random() < 0.5:
            context = numbers.choice(list(self.idle))
            canary, tokens = self.idle.pop(context)
            prompt = tokens[: numbers.randint(1, len(tokens))]
            driver.truncate(context, len(prompt))
            if numbers.random() < 0.3:
                parent, context = context, driver.fork(context, len(prompt))
                driver.free(parent)
            tail = [canary] * numbers.randint(1, 5)
            driver.append(context, tail)
            prompt = prompt + tail
        else:
            canary = numbers.choice(list(self.runs))
            prompt = PREFIX[: numbers.randint(0, 13)] + [canary] * numbers.randint(1, 16)
            context = driver.create(self.runs[canary], prompt)
        generation = driver.generate(context, max_tokens=numbers.randint(1, 12))
        self.running[generation] = (context, canary, prompt)

    def disturb(self) -> None:
        """Cancel, publish and unpublish now and then."""
        if self.running and self.numbers.random() < 0.05:
            self.driver.cancel(self.numbers.choice(list(self.running)))
        if self.numbers.random() < 0.02:
            self.published.append(self.driver.publish(PREFIX))
        if self.published and self.numbers.random() < 0.02:
            self.driver.unpublish(self.published.pop())

    def check(self, hash_text: HashText) -> None:
        """Compare all tokens with those of an undisturbed run, and take note of what has ended."""
        ended = {event.generation_id: event for event in self.driver.events if isinstance(event, Finished)}
        failed = {event.failed_id: event.error.code for event in self.driver.failures}
        assert set(failed.values()) <= {ErrorCode.KV_EXHAUSTED, ErrorCode.CANCELLED}
        for generation, (context, canary, prompt) in list(self.running.items()):
            tokens = self.driver.tokens(generation)
            assert tokens == hash_text(prompt, len(tokens))
            if generation in ended or generation in failed:
                del self.running[generation]
                self.idle[context] = (canary, prompt + tokens)
            if generation in ended:
                self.num_cached_tokens += ended[generation].usage.cached_tokens
        self.driver.events[:] = [e for e in self.driver.events if getattr(e, "generation_id", None) in self.running]
        while len(self.idle) > 4:
            context = next(iter(self.idle))
            del self.idle[context]
            self.driver.free(context)

    def close(self) -> None:
        """Let go of everything."""
        for run_id in self.runs.values():
            self.driver.close_run(run_id)
        for prefix_id in self.published:
            self.driver.unpublish(prefix_id)


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.stress)])
def test_canaries_of_two_tenants(hash_engine: Any, hash_text: HashText, count: int) -> None:
    """All tokens are right while more is waiting than fits, no page is free, and pages change hands all the time.

    The hash model makes of one foreign token in one slot a whole text of other tokens.
    """
    driver = hash_engine(num_pages=NUM_PAGES, page_size=4, max_batch_tokens=24)
    churn = Churn(driver, random.Random(count))
    num_begun = num_steps = num_full_steps = 0
    while num_begun < count or churn.running:
        while num_begun < count and len(churn.running) < 12:
            churn.begin()
            num_begun += 1
        churn.disturb()
        if driver.core.has_work:
            driver.step()
        driver.core.check_integrity()
        churn.check(hash_text)
        num_steps += 1
        num_full_steps += driver.core.stats().pages_free == 0
    churn.close()
    stats = driver.core.stats()

    assert (stats.pages_held, stats.contexts) == (0, 0)
    assert stats.pages_free + stats.pages_cached == NUM_PAGES
    assert num_full_steps > 0.85 * num_steps
    assert churn.num_cached_tokens > count
