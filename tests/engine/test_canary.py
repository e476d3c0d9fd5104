"""Two tenants on a full cache: whatever becomes of pages, no token of one ever depends on the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tartlet_engine.api import Chunk, ErrorCode, Finished
from tartlet_engine.costs import Costs, FixedCosts

Expected = Callable[[Sequence[int], int], list[Any]]  # what follows a prompt, as `Churn.outcome` gives it

NUM_PAGES = 20
LONG = pytest.param(10_000, marks=(pytest.mark.stress, pytest.mark.timeout(3600)))
SWAP_IS_CHEAP = FixedCosts(seconds_per_byte=0.0, seconds_per_token=1.0)
PREFIX = list(range(20, 72))  # both tenants begin with a part of it, which is published now and then


class Churn:
    """Generations of two tenants, whose prompts hold a canary each, on contexts that are cut, forked and freed."""

    def __init__(self, driver: Any, numbers: random.Random, num_logprobs: int | None = None) -> None:
        self.driver = driver
        self.num_logprobs = num_logprobs
        self.unit = driver.info.page_size // 4  # tokens
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
            tail = [canary] * numbers.randint(1, 5 * self.unit)
            driver.append(context, tail)
            prompt = prompt + tail
        else:
            canary = numbers.choice(list(self.runs))
            prompt = PREFIX[: numbers.randint(0, 13 * self.unit)] + [canary] * numbers.randint(1, 16 * self.unit)
            context = driver.create(self.runs[canary], prompt)
        generation = driver.generate(context, self.num_logprobs, max_tokens=numbers.randint(1, 12 * self.unit))
        self.running[generation] = (context, canary, prompt)

    def disturb(self) -> None:
        """Cancel, publish and unpublish now and then."""
        if self.running and self.numbers.random() < 0.05:
            self.driver.cancel(self.numbers.choice(list(self.running)))
        if self.numbers.random() < 0.02:
            self.published.append(self.driver.publish(PREFIX[: 13 * self.unit]))
        if self.published and self.numbers.random() < 0.02:
            self.driver.unpublish(self.published.pop())

    def outcome(self, generation: int) -> list[Any]:
        """What a generation has given so far: its tokens, or their log-probabilities to the bit if it reports them."""
        return outcome(self.driver, generation, self.num_logprobs)

    def check(self, expected: Expected) -> None:
        """Compare all that has ended with an undisturbed run."""
        ended = {event.generation_id: event for event in self.driver.events if isinstance(event, Finished)}
        failed = {event.failed_id: event.error.code for event in self.driver.failures}
        assert set(failed.values()) <= {ErrorCode.KV_EXHAUSTED, ErrorCode.CANCELLED}
        for generation, (context, canary, prompt) in list(self.running.items()):
            if generation in ended or generation in failed:
                tokens = self.driver.tokens(generation)
                assert self.outcome(generation) == expected(prompt, len(tokens))
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


def outcome(driver: Any, generation: int, num_logprobs: int | None) -> list[Any]:
    """What a generation has given, token by token."""
    if num_logprobs is None:
        tokens: list[Any] = driver.tokens(generation)
        return tokens
    chunks = [e for e in driver.events if isinstance(e, Chunk) and e.generation_id == generation]
    return [position.chosen for chunk in chunks for position in chunk.logprobs]


def go_through(churn: Churn, count: int, expected: Expected) -> None:
    """Begin so many generations, twelve at a time, and check what becomes of each."""
    driver = churn.driver
    num_begun = num_steps = num_full_steps = 0
    while num_begun < count or churn.running:
        while num_begun < count and len(churn.running) < 12:
            churn.begin()
            num_begun += 1
        churn.disturb()
        if driver.core.has_work:
            driver.step()
        driver.core.check_integrity()
        churn.check(expected)
        num_steps += 1
        num_full_steps += driver.core.stats().pages_free == 0
    preemptions = driver.core.stats().preemptions
    churn.close()
    stats = driver.core.stats()

    assert (stats.pages_held, stats.pages_swapped, stats.contexts) == (0, 0, 0)
    assert stats.pages_free + stats.pages_cached == NUM_PAGES
    assert num_full_steps > 0.8 * num_steps
    assert churn.num_cached_tokens > count
    assert preemptions > 0.05 * count


@pytest.mark.parametrize("count", [500, LONG])
@pytest.mark.parametrize(("swap_pages", "costs"), [(0, None), (6, SWAP_IS_CHEAP), (100, SWAP_IS_CHEAP)])
def test_canaries_of_two_tenants(
    hash_engine: Any, hash_text: Expected, count: int, swap_pages: int, costs: Costs | None
) -> None:
    """All tokens are right while more is waiting than fits, no page is free, and pages change hands all the time.

    What is set aside is computed again, swapped, or swapped as far as there is space. The hash model makes of one
    foreign token in one slot a whole text of other tokens.
    """
    driver = hash_engine(num_pages=NUM_PAGES, page_size=4, max_batch_tokens=24, swap_pages=swap_pages, costs=costs)
    go_through(Churn(driver, random.Random(count)), count, hash_text)


@pytest.mark.parametrize("count", [100, LONG])
@pytest.mark.parametrize("quantize", ["none", "int8", "int4"])
def test_canaries_in_every_weight_format(tiny_engine: Any, count: int, quantize: str) -> None:
    """With a model of real arithmetic, all log-probabilities are those of a generation that is alone, to the bit."""
    settings = {"runner": "fused", "quantize": quantize, "max_batch_tokens": 96}
    driver = tiny_engine(kv_pages=NUM_PAGES, swap_bytes=1 << 20, **settings)
    alone = tiny_engine(kv_pages=100, swap_bytes=0, prefix_cache=False, **settings)
    run = alone.open_run()

    def expected(prompt: Sequence[int], num_tokens: int) -> list[Any]:
        if num_tokens == 0:
            return []
        context = alone.create(run, prompt)
        generation = alone.generate(context, 0, max_tokens=num_tokens)
        alone.settle()
        found = outcome(alone, generation, 0)
        alone.free(context)
        alone.events.clear()
        return found

    go_through(Churn(driver, random.Random(count), num_logprobs=0), count, expected)
