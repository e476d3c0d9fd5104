"""Evicting where pages are short: what is left cannot be computed again, and never is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartlet_engine.api import ErrorCode
from tartlet_engine.costs import FixedCosts

PROMPT = list(range(10, 40))


@pytest.mark.parametrize("num_swap_pages", [0, 3, 40])
def test_pages_of_evicted_contexts_are_swapped_and_never_computed_again(
    hash_engine: Any, hash_text: Callable[..., list[int]], num_swap_pages: int
) -> None:
    """Under pressure they go to the swap space or stay; where nothing can go, others fail, and this one is whole."""
    driver = hash_engine(num_pages=16, swap_pages=num_swap_pages, costs=FixedCosts(1.0, 0.0))
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.evict(context, 2, 5)
    driver.settle()
    fork = driver.fork(context, 20)
    others = [driver.generate(driver.create(run, [n] * 20), max_tokens=20) for n in range(100, 105)]
    driver.settle()
    computed = driver.runner.num_computed_tokens
    driver.free(fork)
    generation = driver.generate(context, max_tokens=3)
    driver.settle()

    (first,) = hash_text(PROMPT, 1)
    assert driver.tokens(generation) == [first, *hash_text([*PROMPT[:2], *PROMPT[5:], first], 2)]
    assert driver.runner.num_computed_tokens == computed + 2
    failed = {failure.failed_id: failure.error.code for failure in driver.failures}
    assert set(failed.values()) <= {ErrorCode.KV_EXHAUSTED}
    assert (failed == {}) == (num_swap_pages == 40)
    for n, other in zip(range(100, 105), others, strict=True):
        tokens = driver.tokens(other)
        assert tokens == hash_text([n] * 20, 20)[: len(tokens) if other in failed else None]


@pytest.mark.parametrize("has_room", [True, False])
def test_evicting_from_a_swapped_context(hash_engine: Any, hash_text: Callable[..., list[int]], has_room: bool) -> None:
    """Its pages come back for it; if others hold all of the pool, it waits for them."""
    driver = hash_engine(num_pages=12, swap_pages=40, prefix_cache=False, costs=FixedCosts(0.0, 1.0))
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.flush(context)
    driver.settle()
    other = driver.create(run, [100] * 44)
    driver.flush(other)
    driver.settle()
    assert driver.core._contexts.get(context).page_table.num_swapped > 0
    if has_room:
        driver.free(other)
    else:
        generating = driver.generate(other, max_tokens=2)
    evicting = driver.evict(context, 3, 9)
    driver.settle()
    generation = driver.generate(context, max_tokens=3)
    driver.settle()

    (first,) = hash_text(PROMPT, 1)
    assert driver.is_done(evicting)
    assert driver.tokens(generation) == [first, *hash_text([*PROMPT[:3], *PROMPT[9:], first], 2)]
    assert has_room or driver.tokens(generating) == hash_text([100] * 44, 2)


@pytest.mark.parametrize("num_swap_pages", [0, 8, 200])
def test_any_history_under_pressure(hash_engine: Any, hash_text: Callable[..., list[int]], num_swap_pages: int) -> None:
    """Evicted, saved, opened, forked, cut and preempted in any order: what is not refused is right."""

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        driver = hash_engine(num_pages=24, swap_pages=num_swap_pages, max_batch_tokens=16)
        run = driver.open_run()
        # By context: the tokens that are left, and those that its last token saw, if that was more.
        contexts: dict[int, tuple[list[int], list[int] | None]] = {}
        saved: tuple[list[int], list[int] | None] | None = None
        for number in range(data.draw(st.integers(2, 14))):
            actions = ("create", "evict", "evict", "fork", "truncate", "generate", "save", "open", "free")
            action = data.draw(st.sampled_from(actions)) if contexts else "create"
            if action == "create":
                tokens = [3 + (number * 50 + i) % 500 for i in range(data.draw(st.integers(1, 40)))]
                contexts[driver.create(run, tokens)] = (tokens, None)
                continue
            context = data.draw(st.sampled_from(sorted(contexts)))
            tokens, seen = contexts[context]
            if action == "evict":
                start = data.draw(st.integers(0, len(tokens) - 1))
                end = data.draw(st.integers(start, len(tokens) - 1))
                evicting = driver.evict(context, start, end)
                driver.settle()
                if driver.is_done(evicting) and start < end:
                    contexts[context] = (tokens[:start] + tokens[end:], seen or tokens)
            elif action == "fork":
                length = data.draw(st.integers(1, len(tokens)))
                contexts[driver.fork(context, length)] = (tokens[:length], seen if length == len(tokens) else None)
            elif action == "truncate":
                length = data.draw(st.integers(1, len(tokens)))
                driver.truncate(context, length)
                contexts[context] = (tokens[:length], seen if length == len(tokens) else None)
            elif action == "save":
                saving = driver.save(context, overwrite=True)
                driver.settle()
                if driver.is_done(saving):
                    saved = contexts[context]
            elif action == "open" and saved is not None:
                opening, opened = driver.open_saved(run)
                driver.settle()
                if all(failure.failed_id != opening for failure in driver.failures):
                    contexts[opened] = saved
            elif action == "free":
                driver.free(context)
                del contexts[context]
            elif action == "generate":
                generation = driver.generate(context, max_tokens=3)
                driver.settle()
                found = driver.tokens(generation)
                if all(failure.failed_id != generation for failure in driver.failures):
                    first = hash_text(seen or tokens, 1)
                    assert found == first + hash_text(tokens + first, 2)
                    contexts[context] = (tokens + found, None)
                else:
                    driver.free(context)  # how far it came is not known
                    del contexts[context]
        driver.settle()
        driver.core.check_integrity()
        codes = {failure.error.code for failure in driver.failures}
        assert codes <= {ErrorCode.KV_EXHAUSTED}
        assert not codes or num_swap_pages < 200
        driver.close_run(run)
        assert driver.num_held == 0

    check()


@pytest.mark.parametrize("num_swap_pages", [0, 8])
def test_a_page_that_the_step_has_copied_makes_room(
    hash_engine: Any, hash_text: Callable[..., list[int]], num_swap_pages: int
) -> None:
    """Who evicts may take the page of an idle context that it has just got a copy of; nothing is lost or held twice."""
    driver = hash_engine(num_pages=3, swap_pages=num_swap_pages, prefix_cache=False, costs=FixedCosts(0.0, 1.0))
    run = driver.open_run()
    idle = driver.create(run, PROMPT[:6])
    driver.flush(idle)
    driver.settle()
    context = driver.fork(idle, 6)
    driver.append(context, PROMPT[6:8])
    evicting = driver.evict(context, 0, 1)
    driver.settle()
    driver.core.check_integrity()

    assert driver.is_done(evicting)
    driver.free(context)
    generation = driver.generate(idle, max_tokens=2)
    driver.settle()
    assert driver.tokens(generation) == hash_text(PROMPT[:6], 2)
