"""The prefix cache: what is found, for whom, what it costs, and that it changes no token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartlet_engine import prefix_cache
from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import Chunk
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.prefix_cache import PrefixCache
from tartlet_engine.prefix_index import PrefixIndex, page_key
from tartlet_engine.sequence import Sequence as ContextSequence

HashText = Callable[[Sequence[int], int], list[int]]
PROMPT = list(range(20, 42))  # 22 tokens: five full pages of four, and a half


def generate(driver: Any, run_id: int, prompt: Sequence[int], count: int = 1) -> tuple[list[int], int]:
    """Run one generation on a context of its own to its end. Returns its tokens and its cached tokens."""
    context = driver.create(run_id, prompt)
    generation = driver.generate(context, max_tokens=count)
    driver.settle()
    driver.free(context)
    return driver.tokens(generation), driver.finished(generation).usage.cached_tokens


@pytest.mark.parametrize(("prompt_len", "cached"), [(22, 20), (20, 19), (21, 20), (3, 0), (4, 3)])
def test_a_prompt_is_found_after_its_context_is_gone(
    hash_engine: Any, hash_text: HashText, prompt_len: int, cached: int
) -> None:
    """Of the second prompt, the full pages are not computed again, but the last token always is."""
    driver = hash_engine(page_size=4)
    first = generate(driver, driver.open_run(), PROMPT[:prompt_len])
    computed = driver.runner.num_computed_tokens
    second = generate(driver, driver.open_run(), PROMPT[:prompt_len])

    assert first == (hash_text(PROMPT[:prompt_len], 1), 0)
    assert second == (first[0], cached)
    assert driver.runner.num_computed_tokens - computed == prompt_len - cached
    stats = driver.core.stats()
    assert (stats.found_tokens, stats.lookup_tokens, stats.prefill_tokens) == (
        cached,
        2 * prompt_len,
        2 * prompt_len - cached,
    )
    assert (stats.pages_held, stats.pages_cached) == (0, prompt_len // 4)


def test_tenants_do_not_find_each_others_pages(hash_engine: Any) -> None:
    """Another tenant with the very same prompt finds nothing; another run of the same tenant does."""
    driver = hash_engine()
    cached = []
    for tenant in ("a", "b", "a", "b"):
        run_id = driver.open_run(tenant=tenant)
        cached.append(generate(driver, run_id, PROMPT)[1])
        driver.close_run(run_id)

    assert cached == [0, 0, 20, 20]
    assert driver.core.stats().pages_cached == 2 * 5


def test_what_was_generated_is_found(hash_engine: Any, hash_text: HashText) -> None:
    """A second turn whose prompt is the first turn and its answer computes only what is new."""
    driver = hash_engine(num_pages=100)
    answer, _ = generate(driver, driver.open_run(), PROMPT, 30)
    tokens, cached = generate(driver, driver.open_run(), [*PROMPT, *answer, 7, 8], 3)

    assert cached == (len(PROMPT) + 29) // 4 * 4  # the last token of the answer was never computed
    assert tokens == hash_text([*PROMPT, *answer, 7, 8], 3)


def test_contexts_that_live_at_the_same_time_share(hash_engine: Any, hash_text: HashText) -> None:
    """A context finds the pages of one that is still generating, each counts for its run, and none is held twice."""
    driver = hash_engine()
    runs = [driver.open_run(), driver.open_run()]
    first = driver.generate(driver.create(runs[0], PROMPT), max_tokens=20)
    driver.step(3)
    second = driver.generate(driver.create(runs[1], [*PROMPT[:17], 7]), max_tokens=2)
    driver.settle()
    usage = driver.finished(second).usage

    assert driver.tokens(first) == hash_text(PROMPT, 20)
    assert (usage.cached_tokens, usage.pages, usage.shared_pages) == (16, 5, 4)
    assert [account.num_pages for account in driver.core._handler.accounts.values()] == [11, 5]
    assert driver.num_held == 11 + 1


@pytest.mark.parametrize(("budget", "most"), [(32, 20 + 4 * 3), (8, 20 + 4 * 3), (7, 4 * 23 // 2)])
def test_prompts_that_come_together_are_computed_once(
    hash_engine: Any, hash_text: HashText, budget: int, most: int
) -> None:
    """Of equal prompts one is computed, or they take turns, and the others find it. What was found adds up.

    If chunks end within pages, a turn that begins at the page computes that part again.
    """
    driver = hash_engine(max_batch_tokens=budget)
    runs = [driver.open_run() for _ in range(4)]
    prompts = [[*PROMPT, number] for number in range(4)]
    contexts = [driver.create(run_id, prompt) for run_id, prompt in zip(runs, prompts, strict=True)]
    generations = [driver.generate(context, max_tokens=1) for context in contexts]
    driver.settle()

    assert [driver.tokens(g) for g in generations] == [hash_text(prompt, 1) for prompt in prompts]
    cached = [driver.finished(generation).usage.cached_tokens for generation in generations]
    assert driver.runner.num_computed_tokens == 4 * 23 - sum(cached) <= most


def test_equal_pages_become_one(hash_engine: Any) -> None:
    """Two contexts that generate the same tokens at the same time hold the pages that they filled once."""
    driver = hash_engine()
    run_id = driver.open_run()
    for _ in range(2):
        driver.generate(driver.create(run_id, [*PROMPT, 1]), max_tokens=18)
    driver.settle()

    assert driver.num_held == 10
    assert driver.core.stats().pages_cached == 0


def test_pages_found_count_against_the_limit_of_the_run(hash_engine: Any) -> None:
    """A run that may hold seven pages cannot hold ten, though they are all there already."""
    driver = hash_engine()
    generate(driver, driver.open_run(), PROMPT)
    generate(driver, driver.open_run(), PROMPT[1:])
    limited = driver.open_run(max_pages=7)
    driver.flush(driver.create(limited, PROMPT))
    driver.flush(driver.create(limited, PROMPT[1:]))
    driver.settle()

    (limit,) = driver.limits_reached
    assert (limit.run_id, limit.limit, limit.used, limit.allowed) == (limited, "kv_pages", 6 + 5, 7)


def test_who_waits_for_pages_keeps_no_cached_ones(hash_engine: Any, hash_text: HashText) -> None:
    """A prompt that does not fit yet leaves the pages found for it to those that could go on."""
    driver = hash_engine(num_pages=8, page_size=4)
    run_id = driver.open_run()
    generate(driver, run_id, PROMPT[:12])
    running = driver.generate(driver.create(run_id, [7] * 14), max_tokens=18)
    driver.step(4)
    waiting = driver.generate(driver.create(run_id, [*PROMPT[:12], *range(200, 209)]), max_tokens=1)
    driver.step()
    assert (driver.core.stats().waiting, driver.core.stats().pages_cached) == (1, 3)
    for _ in range(13):
        driver.step()

    assert driver.tokens(running) == hash_text([7] * 14, 18)
    assert driver.tokens(waiting) == []
    driver.cancel(waiting)
    driver.settle()


def test_a_failed_step_leaves_no_page_half_copied(hash_engine: Any, hash_text: HashText) -> None:
    """If the step that was to copy an indexed page fails, the context can still be used."""
    driver = hash_engine()
    run_id = driver.open_run()
    generate(driver, run_id, PROMPT[:20])
    context = driver.create(run_id, PROMPT[:20])
    driver.runner.failures = 1
    driver.generate(context, max_tokens=1)
    driver.settle()
    assert len(driver.failures) == 1
    again = driver.generate(context, max_tokens=3)
    driver.settle()

    assert driver.tokens(again) == hash_text(PROMPT[:20], 3)


def test_what_a_sequence_had_before_is_no_hit(hash_engine: Any, hash_text: HashText) -> None:
    """Pages that it gave up and finds again need not be computed again, but are not reported as cached or found."""
    driver = hash_engine(max_batch_tokens=8)
    context = driver.create(driver.open_run(), PROMPT)
    generation = driver.generate(context, max_tokens=2)
    driver.step(2)
    driver.core._contexts.get(context).drop_tail(0)
    driver.settle()

    assert driver.tokens(generation) == hash_text(PROMPT, 2)
    assert driver.finished(generation).usage.cached_tokens == driver.core.stats().found_tokens == 0
    assert (driver.runner.num_computed_tokens, driver.core.stats().lookup_tokens) == (22 + 1, 22)


def test_a_page_written_anew_is_not_found_under_its_old_key(hash_engine: Any, hash_text: HashText) -> None:
    """A context cut within an indexed page and continued otherwise: both continuations are right, from the cache."""
    driver = hash_engine()
    run_id = driver.open_run()
    context = driver.create(run_id, PROMPT)
    driver.flush(context)
    driver.settle()
    driver.truncate(context, 6)
    driver.append(context, [300] * 10)
    driver.flush(context)
    driver.settle()

    for prompt in (PROMPT, [*PROMPT[:6], *[300] * 10]):
        assert generate(driver, run_id, prompt, 2) == (hash_text(prompt, 2), 15 if len(prompt) == 16 else 20)


def test_sequences_whose_slots_are_not_positions_stay_out(hash_engine: Any) -> None:
    """A sequence that says so neither gives pages to the cache nor takes any."""
    driver = hash_engine()
    run_id = driver.open_run()
    for _ in range(2):
        context = driver.create(run_id, PROMPT)
        driver.core._contexts.get(context).gaps = ((1, 5),)
        driver.flush(context)
        driver.settle()

    assert driver.runner.num_computed_tokens == 2 * len(PROMPT)
    assert generate(driver, run_id, PROMPT)[1] == 0


def test_the_cache_can_be_turned_off(hash_engine: Any) -> None:
    """Without it nothing is cached or found, and what nobody holds is free."""
    driver = hash_engine(prefix_cache=False)
    run_id = driver.open_run()
    cached = [generate(driver, run_id, PROMPT)[1] for _ in range(2)]
    stats = driver.core.stats()

    assert cached == [0, 0]
    assert (stats.pages_cached, stats.pages_free, stats.lookup_tokens) == (0, stats.pages_total, 0)


# A conversation: which beginning, how much of it, and for each turn what is appended and how much is generated.
turns = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=3)
conversations = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 70), turns), min_size=2, max_size=5)


@pytest.fixture(params=["fused", "transformers"])
def engines(request: pytest.FixtureRequest, tiny_engine: Any) -> list[Any]:
    """The same model with a cache that drops pages all the time, and without any."""
    page_size = 16 if request.param == "fused" else 4
    num_pages = 12 * 16 // page_size
    settings = {"runner": request.param, "page_size": page_size, "kv_pages": num_pages, "max_batch_tokens": 37}
    return [tiny_engine(prefix_cache=prefix_cache, **settings) for prefix_cache in (True, False)]


def test_the_cache_changes_no_bit(engines: list[Any]) -> None:
    """With the fused runner tokens and log-probabilities are the same with and without the cache, to the last bit.

    With transformers' modules, whose bits depend on the batch, tokens are the same and log-probabilities are close.
    """

    @settings(max_examples=25, deadline=None)
    @given(conversations)
    def check(history: list[tuple[int, int, list[tuple[int, int]]]]) -> None:
        outputs = [[converse(driver, *conversation) for conversation in history] for driver in engines]
        for with_cache, without in zip(*outputs, strict=True):
            assert [tokens for tokens, _ in with_cache] == [tokens for tokens, _ in without]
            for (_, ours), (_, expected) in zip(with_cache, without, strict=True):
                assert ours == (expected if is_fused else pytest.approx(expected, abs=1e-4))

    is_fused = engines[0].info.page_size == 16
    check()
    assert engines[0].core.stats().found_tokens > 1000
    assert engines[1].core.stats().found_tokens == 0


def converse(driver: Any, start: int, length: int, turns: list[tuple[int, int]]) -> list[tuple[list[int], list[float]]]:
    """Take turns in a context and on a fork beside it. Returns tokens and their log-probabilities, turn by turn."""
    context = driver.create(driver.open_run(), [100 + start + i for i in range(length)])
    outputs = []
    for appended, count in turns:
        fork = driver.fork(context, length // 2)
        driver.append(fork, [9])
        driver.append(context, [50 + appended] * appended)
        generations = [driver.generate(c, max_tokens=count, num_logprobs=0) for c in (context, fork)]
        driver.settle()
        driver.free(fork)
        for generation in generations:
            chunks = [e for e in driver.events if isinstance(e, Chunk) and e.generation_id == generation]
            logprobs = [position.chosen.logprob for chunk in chunks for position in chunk.logprobs]
            outputs.append((driver.tokens(generation), logprobs))
    driver.free(context)
    driver.events.clear()
    return outputs


def test_keys_are_computed_once(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps a prompt waits for pages, its pages are hashed once for its tenant and once as published."""
    driver = hash_engine(num_pages=12)
    driver.publish(PROMPT)
    driver.settle()
    run_id = driver.open_run()
    for base in (100, 200):
        driver.generate(driver.create(run_id, [*PROMPT, *range(base, base + 17)]), max_tokens=9)
    keys: list[tuple[bytes, tuple[int, ...]]] = []

    def note(previous_key: bytes, token_ids: Sequence[int]) -> bytes:
        keys.append((previous_key, tuple(token_ids)))
        return page_key(previous_key, token_ids)

    monkeypatch.setattr(prefix_cache, "page_key", note)
    driver.step(4)

    assert driver.core.stats().waiting == 1
    assert max(Counter(keys).values()) == 2  # once for each of the two prompts


def test_prompts_that_wait_are_not_looked_up_again(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a prompt that waits for pages, a step looks for what has come since the last, and holds nothing."""
    driver = hash_engine(num_pages=30, page_size=4)
    run_id = driver.open_run()
    start = list(range(20, 60))
    driver.flush(driver.create(run_id, start))
    driver.settle()
    running = driver.generate(driver.create(run_id, range(100, 150)), max_tokens=18)
    driver.step(4)
    waiting = [driver.generate(driver.create(run_id, start + [200 + n] * 40), max_tokens=1) for n in range(8)]
    driver.step()
    lookups, held = [], []
    find, hold = PrefixIndex.find, PageTable.hold_found
    monkeypatch.setattr(PrefixIndex, "find", lambda *args: lookups.append(args) or find(*args))
    monkeypatch.setattr(PageTable, "hold_found", lambda *args: held.append(args) or hold(*args))
    driver.step(10)

    assert driver.core.stats().waiting == len(waiting)
    assert 0 < len(lookups) <= 10 * (2 * len(waiting) + 3)  # and not ten for each
    assert len(held) <= 10  # the first of those that wait
    monkeypatch.undo()
    driver.settle()
    assert [len(driver.tokens(generation)) for generation in (running, *waiting)] == [18, *[1] * 8]


@given(data=st.data())
def test_what_is_remembered_is_what_would_be_found(data: st.DataObject) -> None:
    """Whatever is put into the index and taken out between two looks, and wherever they begin."""
    pool = PagePool(60, 4)
    cache = PrefixCache(pool, "model")
    account = RunAccount(1, "local", None, None)
    sequence = ContextSequence(1, account, PageTable(pool, account), list(range(32)))
    keys = cache.keys(sequence, 8)
    free, chain = pool.allocate(50), []
    for _ in range(data.draw(st.integers(1, 12))):
        action = data.draw(st.sampled_from(["add", "add", "remove", "look"]))
        if action == "add" and len(chain) < 8 and free:
            page_id = free.pop(data.draw(st.integers(0, len(free) - 1)))
            pool.index.insert(keys[len(chain)], page_id, chain[-1] if chain else None)
            chain.append(page_id)
        elif action == "remove" and chain:
            first = data.draw(st.integers(0, len(chain) - 1))
            free += pool.index.remove(chain[first])
            del chain[first:]
        first = data.draw(st.sampled_from([0, 0, 2]))
        last = data.draw(st.sampled_from([8, 8, 5]))
        assert cache._find(sequence, first, last) == chain[first:last]
