"""An eviction for which there are too few pages waits its turn, and holds nothing meanwhile that others could use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartlet_engine import transfers
from tartlet_engine.accounts import RunLimitError
from tartlet_engine.api import EngineError
from tartlet_engine.costs import FixedCosts

PROMPT = list(range(10, 90))  # 20 pages
LONG = [7] * 130  # 33 pages, and more when it generates


def kept(tokens: list[int], start: int, end: int) -> list[int]:
    return tokens[:start] + tokens[end:]


@pytest.fixture
def crowded(hash_engine: Any) -> Callable[..., tuple[Any, list[int], int]]:
    """Contexts of 20 pages with PROMPT, swapped, since somebody's generation holds most of a pool of 40 pages."""

    def make(num_contexts: int = 1, tenant: str = "calm", max_tokens: int = 20) -> tuple[Any, list[int], int]:
        driver = hash_engine(num_pages=40, swap_pages=400, prefix_cache=False, costs=FixedCosts(0.0, 1.0))
        run = driver.open_run(tenant="calm")
        contexts = [driver.create(run, PROMPT) for _ in range(num_contexts)]
        for context in contexts:
            driver.flush(context)
            driver.settle()
        generation = driver.generate(driver.create(driver.open_run(tenant=tenant), LONG), max_tokens=max_tokens)
        driver.step(8)
        assert all(driver.core._contexts.get(context).page_table.num_swapped > 0 for context in contexts)
        return driver, contexts, generation

    return make


def assert_evicted(driver: Any, hash_text: Callable[..., list[int]], context: int) -> None:
    """The tokens 3 to 9 are gone for those that come later."""
    generation = driver.generate(context, max_tokens=3)
    driver.settle()
    (first,) = hash_text(PROMPT, 1)
    assert driver.tokens(generation) == [first, *hash_text([*kept(PROMPT, 3, 9), first], 2)]


@pytest.mark.parametrize("tenant", ["calm", "busy"])
def test_it_waits_and_is_done(crowded: Any, hash_text: Callable[..., list[int]], tenant: str) -> None:
    """For an older neighbour of its tenant, and its turn among tenants; both end as if they had been alone."""
    driver, (context,), neighbour = crowded(tenant=tenant)
    evicting = driver.evict(context, 3, 9)
    driver.step(2)
    if tenant == "calm":
        assert not driver.is_done(evicting)
        assert driver.core.stats().waiting == 1
    driver.settle()

    assert driver.is_done(evicting)
    assert driver.tokens(neighbour) == hash_text(LONG, 20)
    assert_evicted(driver, hash_text, context)


def test_a_neighbour_that_goes_on_for_ever(crowded: Any, hash_text: Callable[..., list[int]]) -> None:
    """It does not wait for the end of another tenant's generation: that one stands back for a moment."""
    driver, (context,), neighbour = crowded(tenant="busy", max_tokens=800)
    evicting = driver.evict(context, 3, 9)
    for _ in range(200):
        driver.step()
        if driver.is_done(evicting):
            break

    assert driver.is_done(evicting)
    assert 0 < len(driver.tokens(neighbour)) < 100
    driver.cancel(neighbour)
    assert_evicted(driver, hash_text, context)


@pytest.mark.parametrize("num_forks", [0, 1])
def test_several_that_wait_for_each_other(crowded: Any, hash_text: Callable[..., list[int]], num_forks: int) -> None:
    """More than fit at once are moved one after the other, though forks hold the old pages, and nothing spins."""
    driver, contexts, _ = crowded(num_contexts=4)
    forks = [driver.fork(context, len(PROMPT)) for context in contexts[:num_forks] * num_forks]
    evictions = [driver.evict(context, 3, 9) for context in contexts]
    driver.settle()

    assert all(map(driver.is_done, evictions))
    for context in contexts:
        assert_evicted(driver, hash_text, context)
    for fork in forks:
        generation = driver.generate(fork, max_tokens=2)
        driver.settle()
        assert driver.tokens(generation) == hash_text(PROMPT, 2)


@pytest.mark.parametrize("ending", ["free", "close", "limit"])
def test_whatever_ends_it(crowded: Any, ending: str) -> None:
    """What waits is freed, or its run closed or stopped: no event follows, nothing is left, the others go on."""
    driver, (context,), neighbour = crowded()
    sequence = driver.core._contexts.get(context)
    evicting = driver.evict(context, 3, 9)
    driver.step(1)
    assert sequence.room is not None
    if ending == "free":
        driver.free(context)
    elif ending == "close":
        driver.close_run(sequence.account.run_id)
    else:
        driver.core._demands.stop_run(RunLimitError(sequence.account, "kv_pages", 2, 1))
    driver.settle()

    assert not driver.is_done(evicting)
    assert driver.failures == []
    assert len(driver.tokens(neighbour)) == 20
    assert sequence.room is None
    assert not sequence.has_demand


def test_busy_but_for_forks(crowded: Any, hash_text: Callable[..., list[int]]) -> None:
    """Until it is done, nothing else can be asked of the context; a fork has all of its tokens."""
    driver, (context,), _ = crowded(tenant="busy")
    evicting = driver.evict(context, 3, 9)
    driver.step(1)
    refused: list[EngineError] = [driver.failure(driver.flush(context)), driver.failure(driver.evict(context, 0, 1))]
    fork = driver.fork(context, len(PROMPT))
    generation = driver.generate(fork, max_tokens=3)
    driver.settle()

    assert [error.code for error in refused] == ["unavailable"] * 2
    assert driver.is_done(evicting)
    assert driver.tokens(generation) == hash_text(PROMPT, 3)
    assert_evicted(driver, hash_text, context)


def test_a_move_that_fails(crowded: Any) -> None:
    """It fails alone: the neighbour goes on."""
    driver, (context,), neighbour = crowded(tenant="busy")
    evicting = driver.evict(context, 3, 9)
    driver.runner.move_slots = None
    driver.settle()

    assert driver.failure(evicting).code == "internal"
    assert len(driver.tokens(neighbour)) == 20


def test_any_crowd(hash_engine: Any, hash_text: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever generates and evicts at once, in any order: with room to swap, all are done, with the right tokens."""
    monkeypatch.setattr(transfers, "TRANSFER_S", 0)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        driver = hash_engine(num_pages=16, swap_pages=400, max_batch_tokens=16, costs=FixedCosts(0.0, 1.0))
        runs = [driver.open_run(tenant=tenant) for tenant in "ab"]
        contexts = []
        for number in range(data.draw(st.integers(2, 5))):
            tokens = [100 + number, *PROMPT[: data.draw(st.integers(10, 50))]]
            contexts.append((driver.create(data.draw(st.sampled_from(runs)), tokens), tokens))
            driver.flush(contexts[-1][0])
            driver.settle()
        evictions, generations = {}, []
        for context, tokens in data.draw(st.permutations(contexts)):
            if data.draw(st.booleans()):
                fork = driver.fork(context, len(tokens))
                generations.append((driver.generate(fork, max_tokens=10), tokens))
            start = data.draw(st.integers(0, len(tokens) - 2))
            evictions[context] = driver.evict(context, start, start + 1), start
            driver.step(data.draw(st.integers(0, 3)))
        driver.settle()

        assert driver.failures == []
        for generation, tokens in generations:
            assert driver.tokens(generation) == hash_text(tokens, 10)
        for context, tokens in contexts:
            evicting, start = evictions[context]
            assert driver.is_done(evicting)
            generation = driver.generate(context, max_tokens=2)
            driver.settle()
            (first,) = hash_text(tokens, 1)
            assert driver.tokens(generation) == [first, *hash_text([*kept(tokens, start, start + 1), first], 1)]

    check()
