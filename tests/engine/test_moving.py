"""Evictions move what is kept some pages a step, by turns: all tokens are there until the end, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartlet_engine.api import ErrorCode

PROMPT = list(range(10, 50))
pytestmark = pytest.mark.usefixtures("one_page_a_step")


def kept(tokens: list[int], start: int, end: int) -> list[int]:
    return tokens[:start] + tokens[end:]


def test_a_storm_of_evictions_holds_nobody_up(hash_engine: Any, hash_text: Callable[..., list[int]]) -> None:
    """A page is moved between two steps, however many contexts are evicted from, and a neighbour has a token a step."""
    driver = hash_engine(num_pages=400)
    moved: list[int] = []
    move_slots = driver.runner.move_slots
    driver.runner.move_slots = lambda moves: (moved.append(len(moves.target_offsets)), move_slots(moves))
    storm = driver.open_run(tenant="storm")
    contexts = [driver.create(storm, [number, *PROMPT]) for number in range(100, 120)]
    for context in contexts:
        driver.flush(context)
    driver.settle()
    neighbour = driver.generate(driver.create(driver.open_run(tenant="calm"), PROMPT), max_tokens=400)
    driver.step(3)
    evictions = [driver.evict(context, 3, 5) for context in contexts]
    before = len(driver.tokens(neighbour))
    driver.step(100)

    assert len(driver.tokens(neighbour)) == before + 100
    assert 90 <= len(moved) <= 100
    assert max(moved) <= 4
    num_done = sum(map(driver.is_done, evictions))
    assert 0 < num_done < len(evictions)
    assert [driver.is_done(each) for each in evictions] == [True] * num_done + [False] * (len(evictions) - num_done)
    driver.settle()
    for number, context in zip(range(100, 120), contexts, strict=True):
        generation = driver.generate(context, max_tokens=3)
        driver.settle()
        (first,) = hash_text([number, *PROMPT], 1)
        assert driver.tokens(generation) == [first, *hash_text([*kept([number, *PROMPT], 3, 5), first], 2)]


def test_a_neighbours_eviction_takes_turns(hash_engine: Any) -> None:
    """It waits for one piece of the storm's at a time, not for all that was asked before it."""
    driver = hash_engine(num_pages=400)
    storm, calm = driver.open_run(tenant="storm"), driver.open_run(tenant="calm")
    contexts = [driver.create(run, [number, *PROMPT]) for number, run in enumerate([storm] * 20 + [calm], 100)]
    for context in contexts:
        driver.flush(context)
    driver.settle()
    evictions = [driver.evict(context, 3, 5) for context in contexts]
    driver.step(2 * 12)

    assert driver.is_done(evictions[-1])
    assert sum(map(driver.is_done, evictions)) <= 3
    driver.settle()


@pytest.mark.parametrize("num_steps", range(14))
def test_forks_have_all_tokens_whenever_they_are_made(
    hash_engine: Any, hash_text: Callable[..., list[int]], num_steps: int
) -> None:
    """Until the eviction is done nothing is missing, and the context takes no other commands."""
    driver = hash_engine(num_pages=100)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.flush(context)
    driver.settle()
    evicting = driver.evict(context, 5, 11)
    driver.step(num_steps)
    is_done = driver.is_done(evicting)
    length = len(PROMPT) - 6 if is_done else len(PROMPT)
    tokens = kept(PROMPT, 5, 11) if is_done else PROMPT
    fork = driver.fork(context, length - 1)
    if not is_done:
        assert driver.failure(driver.flush(context)).code is ErrorCode.UNAVAILABLE
    generation = driver.generate(fork, max_tokens=6)
    driver.settle()

    assert driver.is_done(evicting)
    assert driver.tokens(generation) == hash_text(tokens[: length - 1], 6)
    driver.close_run(run)
    assert driver.num_held == 0


@pytest.mark.parametrize("ending", ["free", "close", "limit"])
@pytest.mark.parametrize("num_steps", range(12))
def test_whatever_ends_it(hash_engine: Any, num_steps: int, ending: str) -> None:
    """The context is freed, its run is closed or reaches a limit in between: nothing is left, no event follows."""
    driver = hash_engine(num_pages=100)
    run = driver.open_run(max_generated_tokens=1)
    context = driver.create(run, PROMPT)
    other = driver.create(run, PROMPT[:3])
    driver.flush(context)
    driver.settle()
    evicting = driver.evict(context, 5, 11)
    driver.step(num_steps)
    is_done = driver.is_done(evicting)
    if ending == "free":
        driver.free(context)
        driver.free(other)
    elif ending == "close":
        driver.close_run(run)
    else:
        driver.generate(other, max_tokens=5)
    driver.settle()

    assert driver.is_done(evicting) == is_done or ending == "limit"
    assert driver.failures == []
    driver.core.check_integrity()
    if ending != "limit":
        assert driver.num_held == 0
    driver.close_run(run)
    assert driver.num_held == 0


def test_pages_on_their_way_do_not_count(hash_engine: Any) -> None:
    """A run at its limit of pages can evict and generate at once; the limit holds afterwards as before."""
    driver = hash_engine(num_pages=100)
    run = driver.open_run(max_pages=len(PROMPT) // 4 + 3)
    context = driver.create(run, PROMPT)
    driver.flush(context)
    driver.settle()
    evicting = driver.evict(context, 1, 3)
    generation = driver.generate(driver.create(run, PROMPT[:3]), max_tokens=8)
    driver.settle()

    assert driver.limits_reached == []
    assert driver.is_done(evicting)
    assert len(driver.tokens(generation)) == 8
    driver.generate(driver.create(run, [7, *PROMPT]), max_tokens=1)
    driver.settle()
    assert [event.limit for event in driver.limits_reached] == ["kv_pages"]


@pytest.mark.parametrize("num_free", range(10))
def test_where_pages_are_short(hash_engine: Any, hash_text: Callable[..., list[int]], num_free: int) -> None:
    """What is dropped gives its pages to what moves; the outcome is the same."""
    driver = hash_engine(num_pages=20, prefix_cache=False)
    run = driver.open_run()
    context = driver.create(run, PROMPT)  # 10 pages
    driver.flush(context)
    driver.settle()
    # It begins to generate, has its pages, and goes on as long as the test lasts.
    other = driver.generate(driver.create(driver.open_run(), PROMPT[: 4 * (10 - num_free) - 3]), max_tokens=3)
    driver.step()
    evicting = driver.evict(context, 5, 11)
    driver.settle()
    generation = driver.generate(context, max_tokens=2)
    driver.settle()

    assert driver.is_done(evicting)
    (first,) = hash_text(PROMPT, 1)
    assert driver.tokens(generation) == [first, *hash_text([*kept(PROMPT, 5, 11), first], 1)]
    assert len(driver.tokens(other)) == 3


def test_a_limit_where_pages_are_short(hash_engine: Any) -> None:
    """A fork needs the old pages, so that what moves is beyond the run's limit: that ends the run, as anywhere."""
    driver = hash_engine(num_pages=20, prefix_cache=False)
    run = driver.open_run(max_pages=11)
    context = driver.create(run, PROMPT)  # 10 pages
    driver.flush(context)
    driver.settle()
    driver.fork(context, len(PROMPT))
    driver.generate(driver.create(driver.open_run(), PROMPT[:37]), max_tokens=3)
    driver.step()
    driver.evict(context, 5, 11)
    driver.settle()

    assert not driver.failures
    assert [event.limit for event in driver.limits_reached] == ["kv_pages"]


def test_a_move_that_fails(hash_engine: Any, hash_text: Callable[..., list[int]]) -> None:
    """The operation fails, and the context is as it was."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), PROMPT)
    driver.flush(context)
    driver.settle()
    move_slots, driver.runner.move_slots = driver.runner.move_slots, None
    evicting = driver.evict(context, 5, 11)
    driver.settle()
    driver.runner.move_slots = move_slots
    generation = driver.generate(context, max_tokens=3)
    driver.settle()

    assert driver.failure(evicting).code is ErrorCode.INTERNAL
    assert driver.tokens(generation) == hash_text(PROMPT, 3)


def test_any_history(hash_engine: Any, hash_text: Callable[..., list[int]]) -> None:
    """Evictions of many contexts, forks, frees, closed runs and steps in any order: each has the tokens it should."""

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        driver = hash_engine(num_pages=data.draw(st.sampled_from((60, 300))), swap_pages=50, max_batch_tokens=16)
        runs = [driver.open_run(tenant=tenant) for tenant in "ab"]
        owners: dict[int, int] = {}
        tokens: dict[int, list[int]] = {}  # by context, once its evictions are done
        evictions: dict[int, tuple[int, int, int]] = {}  # by operation: context, start, end
        for number in range(data.draw(st.integers(5, 25))):
            action = data.draw(st.sampled_from(("create", "evict", "evict", "fork", "free", "step", "step", "close")))
            for operation, (context, start, end) in list(evictions.items()):
                if driver.is_done(operation):
                    tokens[context] = kept(tokens[context], start, end)
                    del evictions[operation]
            busy = {context for context, *_ in evictions.values()}
            if action == "create":
                run = data.draw(st.sampled_from(runs))
                length = data.draw(st.integers(2, 30))
                context = driver.create(run, [100 + number, *PROMPT[:length]])
                owners[context], tokens[context] = run, [100 + number, *PROMPT[:length]]
            elif action == "step":
                driver.step(data.draw(st.integers(1, 6)))
            elif action == "close":
                run = runs.pop(data.draw(st.integers(0, 1)))
                driver.close_run(run)
                runs.append(driver.open_run(tenant="c"))
                tokens = {context: each for context, each in tokens.items() if owners[context] != run}
                evictions = {key: each for key, each in evictions.items() if owners[each[0]] != run}
            elif tokens:
                context = data.draw(st.sampled_from(sorted(tokens)))
                length = len(tokens[context])
                if action == "fork":
                    child = driver.fork(context, length)
                    owners[child], tokens[child] = owners[context], list(tokens[context])
                elif action == "free":
                    driver.free(context)
                    del tokens[context]
                    evictions = {key: each for key, each in evictions.items() if each[0] != context}
                elif context not in busy:
                    start = data.draw(st.integers(0, length - 1))
                    end = data.draw(st.integers(start, length - 1))
                    evictions[driver.evict(context, start, end)] = (context, start, end)
            driver.core.check_integrity()
        driver.settle()
        for context, start, end in evictions.values():
            tokens[context] = kept(tokens[context], start, end)
        assert driver.failures == []
        for context, each in tokens.items():
            driver.append(context, [7])
            generation = driver.generate(context, max_tokens=2)
            driver.settle()
            assert driver.tokens(generation) == hash_text([*each, 7], 2)
        for run in runs:
            driver.close_run(run)
        assert driver.num_held == 0

    check()


@pytest.mark.parametrize("num_steps", range(6))
def test_a_run_that_is_closed_bit_by_bit(hash_engine: Any, num_steps: int) -> None:
    """A context at a time, with steps in between, whatever is under way: the books balance, and no event follows."""
    driver = hash_engine(num_pages=200)
    saver = driver.open_run()
    driver.save(driver.create(saver, PROMPT))
    driver.settle()
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.evict(context, 5, 11)
    driver.save(driver.fork(context, 20), "other")
    driver.open_saved(run)
    driver.generate(driver.fork(context, 30), max_tokens=50)
    driver.flush(driver.fork(context, 10))
    driver.step(num_steps)
    driver.events.clear()
    num_rounds = 0
    while not driver.core.prepare_close(run, lambda: True):
        driver.core.check_integrity()
        driver.step()
        num_rounds += 1
    driver.close_run(run)
    driver.settle()

    assert num_rounds >= 3
    assert driver.events == []
    driver.close_run(saver)
    assert driver.num_held == 0
