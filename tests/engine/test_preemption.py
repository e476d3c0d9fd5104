"""Under page pressure: whoever is set aside goes on as if nothing had happened, everyone ends, and books balance."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartlet_engine.api import Chunk, ErrorCode
from tartlet_engine.costs import FixedCosts

HashText = Callable[[Sequence[int], int], list[int]]
SWAP_IS_CHEAP = FixedCosts(seconds_per_byte=0.0, seconds_per_token=1.0)
COMPUTING_IS_CHEAP = FixedCosts(seconds_per_byte=1.0, seconds_per_token=0.0)


class Churn:
    """A random history of a few tenants, in a pool that is much too small for all but enough for each context."""

    def __init__(self, driver: Any, seed: int, num_tenants: int) -> None:
        self.driver = driver
        self.random = random.Random(seed)
        self.max_len = driver.info.num_pages * driver.info.page_size
        self.runs = [driver.open_run(tenant=f"t{i}", weight=self.random.choice([1.0, 2.0])) for i in range(num_tenants)]
        self.contexts: dict[int, list[int]] = {}
        self.running: dict[int, tuple[int, list[int], int]] = {}  # generation -> context, prompt, count
        self.flushes: dict[int, int] = {}  # operation -> context
        self.expected: list[tuple[int, list[int], int]] = []  # generation, prompt, count
        self.num_steps = 0

    def act(self) -> None:
        """Do something at random."""
        action = self.random.choice(
            ["create", "create", "fork", "generate", "generate", "generate", "flush", "free", "cancel"]
        )
        busy = {context for context, _, _ in self.running.values()} | set(self.flushes.values())
        idle = [context for context in self.contexts if context not in busy]
        if action == "create":
            tokens = [self.random.randrange(500) for _ in range(self.random.randint(1, self.max_len - 10))]
            self.contexts[self.driver.create(self.random.choice(self.runs), tokens)] = tokens
        elif action == "fork" and idle:
            parent = self.random.choice(idle)
            for _ in range(self.random.randint(1, 3)):
                length = self.random.choice(
                    [len(self.contexts[parent]), self.random.randint(0, len(self.contexts[parent]))]
                )
                self.contexts[self.driver.fork(parent, length)] = self.contexts[parent][:length]
        elif action == "generate" and (ready := [c for c in idle if 0 < len(self.contexts[c]) < self.max_len]):
            context = self.random.choice(ready)
            prompt = self.contexts[context]
            # The last token sampled is not computed, so there is room for one more than the pool has.
            count = self.random.randint(1, min(20, self.max_len - len(prompt)))
            self.running[self.driver.generate(context, max_tokens=count)] = (context, prompt, count)
        elif action == "flush" and idle:
            context = self.random.choice(idle)
            self.flushes[self.driver.flush(context)] = context
        elif action == "free" and self.contexts:
            context = self.random.choice(list(self.contexts))
            self.driver.free(context)
            del self.contexts[context]
            self.running = {g: entry for g, entry in self.running.items() if entry[0] != context}
            self.flushes = {o: c for o, c in self.flushes.items() if c != context}
        elif action == "cancel" and self.running:
            generation = self.random.choice(list(self.running))
            self.driver.cancel(generation)
            context, prompt, _ = self.running.pop(generation)
            self.contexts[context] = prompt + self.driver.tokens(generation)

    def step(self) -> None:
        """Carry out a step, check the books, and take over what has ended."""
        if self.driver.core.has_work:
            self.driver.step()
            self.num_steps += 1
        self.driver.core.check_integrity()
        ended = {event.generation_id for event in self.driver.events if hasattr(event, "reason")}
        for generation in ended & set(self.running):
            context, prompt, count = self.running.pop(generation)
            self.expected.append((generation, prompt, count))
            self.contexts[context] = prompt + self.driver.tokens(generation)
        self.flushes = {o: c for o, c in self.flushes.items() if not self.driver.is_done(o)}


def test_preempted_is_undisturbed(hash_engine: Any, hash_text: HashText) -> None:
    """Whatever is swapped, dropped, forked, freed and cancelled: no generation fails, and each has its own tokens."""
    preemptions = []

    @settings(max_examples=100, deadline=None)
    @given(
        seed=st.integers(0, 2**32),
        num_pages=st.integers(3, 14),
        swap_pages=st.sampled_from([0, 2, 5, 500]),
        costs=st.sampled_from([SWAP_IS_CHEAP, COMPUTING_IS_CHEAP]),
        num_tenants=st.integers(1, 3),
        has_cache=st.booleans(),
        runs_ahead=st.booleans(),
    )
    def check(
        seed: int,
        num_pages: int,
        swap_pages: int,
        costs: FixedCosts,
        num_tenants: int,
        has_cache: bool,
        runs_ahead: bool,
    ) -> None:
        options = {"swap_pages": swap_pages, "costs": costs, "prefix_cache": has_cache, "runs_ahead": runs_ahead}
        driver = hash_engine(num_pages=num_pages, max_batch_tokens=11, **options)
        churn = Churn(driver, seed, num_tenants)
        for _ in range(60):
            for _ in range(churn.random.randint(0, 3)):
                churn.act()
            churn.step()
        while driver.core.has_work:
            churn.step()
            assert churn.num_steps < 6000, "it does not come to an end"
        assert driver.failures == []
        assert churn.running == {}
        for generation, prompt, count in churn.expected:
            assert driver.tokens(generation) == hash_text(prompt, count)
        stats = driver.core.stats()
        preemptions.append(stats.preemptions)
        if has_cache:
            assert stats.lookup_tokens == stats.prefill_tokens + stats.found_tokens
        for run_id in churn.runs:
            driver.close_run(run_id)
        stats = driver.core.stats()
        assert (stats.pages_held, stats.pages_swapped) == (0, 0)

    check()
    assert sum(preemptions) > 100


@pytest.mark.parametrize("swap_pages", [0, 500])
def test_as_many_tenants_go_on_as_fit(hash_engine: Any, hash_text: HashText, swap_pages: int) -> None:
    """Where contexts are larger than their tenants' shares, and grow, most of those that fit run at once."""
    driver = hash_engine(num_pages=40, swap_pages=swap_pages, costs=SWAP_IS_CHEAP, max_batch_tokens=64)
    prompts = [[10 * tenant + 20, *range(16)] for tenant in range(10)]
    contexts = [driver.create(driver.open_run(tenant=f"t{number}"), prompt) for number, prompt in enumerate(prompts)]
    generations = [driver.generate(context, max_tokens=12) for context in contexts]
    driver.settle()

    assert [driver.tokens(generation) for generation in generations] == [hash_text(prompt, 12) for prompt in prompts]
    # Each has 7 pages in the end, so 5 fit: two rounds of 12 tokens, and some steps for prompts and for what is given.
    assert driver.core.stats().steps < 45


def test_idle_contexts_go_first_the_least_recently_used_of_all(hash_engine: Any, hash_text: HashText) -> None:
    """Contexts that nobody waits for make room before anything that runs, and come back when they are used."""
    driver = hash_engine(num_pages=12, swap_pages=100, costs=SWAP_IS_CHEAP)
    run_id = driver.open_run()
    contexts = [driver.create(run_id, range(base, base + 12)) for base in (0, 100, 200)]
    for context in contexts:
        driver.flush(context)
        driver.settle()
    running = driver.generate(driver.create(run_id, range(50, 60)), max_tokens=14)  # six pages of twelve
    driver.settle()
    tables = {context: driver.core._contexts.get(context).page_table for context in contexts}

    assert [tables[context].num_swapped for context in contexts] == [3, 0, 0]
    assert driver.core.stats().preemptions == 0
    assert driver.tokens(running) == hash_text(range(50, 60), 14)
    computed = driver.runner.num_computed_tokens
    again = driver.generate(contexts[0], max_tokens=2)
    driver.settle()
    assert driver.tokens(again) == hash_text(range(12), 2)
    assert driver.runner.num_computed_tokens == computed + 1  # its logits were kept, and nothing was computed again


@pytest.mark.parametrize("invariant", [True, False])
@pytest.mark.parametrize(("costs", "swap_pages"), [(SWAP_IS_CHEAP, 100), (COMPUTING_IS_CHEAP, 100), (SWAP_IS_CHEAP, 0)])
def test_the_cheaper_way_is_taken(
    hash_engine: Any, hash_text: HashText, invariant: bool, costs: FixedCosts, swap_pages: int
) -> None:
    """Pages are swapped where that is cheaper and there is space; a runner whose bits depend on the batch must swap."""
    driver = hash_engine(num_pages=10, swap_pages=swap_pages, costs=costs)
    driver.runner.is_batch_invariant = invariant
    run_id = driver.open_run()
    prompts = [range(base, base + 12) for base in (0, 100, 200)]
    generations = [driver.generate(driver.create(run_id, prompt), max_tokens=16) for prompt in prompts]
    driver.settle()

    stats = driver.core.stats()
    can_swap = swap_pages > 0 and (costs is SWAP_IS_CHEAP or not invariant)
    assert (stats.recomputed_tokens == 0) == can_swap
    assert stats.preemptions > 0
    assert [driver.tokens(generation) for generation in generations] == [hash_text(prompt, 16) for prompt in prompts]


def test_forks_that_were_swapped_share_again(hash_engine: Any, hash_text: HashText) -> None:
    """A prompt that N forks share is swapped once and comes back once: P + N pages, as if nothing had happened."""
    driver = hash_engine(num_pages=24, swap_pages=100, costs=SWAP_IS_CHEAP)
    run_id, prompt = driver.open_run(), list(range(32))
    parent = driver.create(run_id, prompt)
    forks = [driver.fork(parent, 32) for _ in range(4)]
    for number, fork in enumerate(forks):
        driver.append(fork, [100 + number])
        driver.flush(fork)
    driver.settle()
    assert driver.num_held == 8 + 4
    big = driver.create(run_id, range(200, 296))
    driver.flush(big)
    driver.settle()
    assert (driver.num_held, driver.core.stats().pages_swapped) == (24, 8 + 4)
    driver.core.check_integrity()
    driver.free(big)
    generations = [driver.generate(fork, max_tokens=2) for fork in forks]
    driver.settle()

    assert driver.num_held == 8 + 4
    assert driver.core.stats().pages_swapped == 0
    for number, generation in enumerate(generations):
        assert driver.tokens(generation) == hash_text([*prompt, 100 + number], 2)


@pytest.mark.parametrize("ending", ["free", "cancel", "close", "truncate", "fork"])
def test_swap_space_is_freed_on_every_path(hash_engine: Any, hash_text: HashText, ending: str) -> None:
    """What happens to a context while its pages are swapped, happens to the swapped pages."""
    driver = hash_engine(num_pages=8, swap_pages=100, costs=SWAP_IS_CHEAP)
    run_id, other = driver.open_run(), driver.open_run(tenant="other")
    old = driver.create(other, range(16))
    driver.generate(old, max_tokens=20)
    young = driver.create(other, range(100, 112))
    generation = driver.generate(young, max_tokens=12)
    driver.step(8)
    driver.flush(driver.create(run_id, range(200, 212)))
    driver.step()
    swapped = driver.core._contexts.get(young).page_table.num_swapped
    assert swapped > 0
    swapped_of_old = driver.core._contexts.get(old).page_table.num_swapped
    match ending:
        case "free":
            driver.free(young)
        case "cancel":
            driver.cancel(generation)
            driver.free(young)
        case "close":
            driver.close_run(other)
        case "truncate":
            driver.cancel(generation)
            driver.truncate(young, 1)
        case "fork":
            child = driver.fork(young, 12)
            driver.core.check_integrity()
            driver.free(young)
            generation = driver.generate(child, max_tokens=3)
    driver.core.check_integrity()
    if ending != "fork":
        swapped_of_old = 0 if ending == "close" else swapped_of_old
        assert driver.core.stats().pages_swapped <= swapped_of_old + (1 if ending == "truncate" else 0)
    driver.settle()
    if ending == "fork":
        assert driver.tokens(generation)[-3:] == hash_text(range(100, 112), 3)
    driver.close_run(other)
    driver.close_run(run_id)

    assert driver.core.stats().pages_swapped == 0


def test_a_flood_gives_way_to_a_tenant_within_its_share(hash_engine: Any, hash_text: HashText) -> None:
    """A tenant that holds all pages is preempted at once for another, and only as far as that one's share goes."""
    driver = hash_engine(num_pages=40, swap_pages=200, costs=SWAP_IS_CHEAP, max_batch_tokens=64)
    flood = driver.open_run(tenant="flood")
    for base in range(12):
        driver.generate(driver.create(flood, range(base, base + 20)), max_tokens=30)
    driver.step(20)
    assert driver.core._pool.num_available < 5
    polite = driver.open_run(tenant="polite")
    generation = driver.generate(driver.create(polite, range(40)), max_tokens=6)
    driver.step(2)

    assert len(driver.tokens(generation)) >= 1
    shares = driver.core._shares.tenants
    assert shares["flood"].num_pages >= 20
    driver.settle()
    assert driver.tokens(generation) == hash_text(range(40), 6)
    assert driver.failures == []


def test_sequences_that_only_fit_alone_take_turns(hash_engine: Any, hash_text: HashText) -> None:
    """Two tenants, each with a context of more than half of the pool: both get on, in turns, and both end."""
    driver = hash_engine(num_pages=40, swap_pages=100, costs=SWAP_IS_CHEAP, max_batch_tokens=16)
    runs = [driver.open_run(tenant=name) for name in ("one", "two")]
    generations = [driver.generate(driver.create(run, range(i, i + 100)), max_tokens=50) for i, run in enumerate(runs)]
    leads = []
    while driver.core.has_work:
        driver.step()
        counts = [len(driver.tokens(generation)) for generation in generations]
        leads.append(counts[0] - counts[1])

    assert (
        max(leads) - min(leads) < 90
    )  # not first the one and then the other, which would be 50 and more of a lead each
    assert [driver.tokens(generation) for generation in generations] == [
        hash_text(range(i, i + 100), 50) for i in range(2)
    ]


def test_nobody_is_preempted_twice_without_having_got_further(hash_engine: Any) -> None:
    """Whoever comes back gets at least one token before it has to stop again."""
    driver = hash_engine(num_pages=10, swap_pages=0, costs=COMPUTING_IS_CHEAP, max_batch_tokens=5)
    runs = [driver.open_run(tenant=name) for name in ("one", "two", "three")]
    generations = [driver.generate(driver.create(run, range(i, i + 14)), max_tokens=20) for i, run in enumerate(runs)]
    driver.settle()

    assert [len(driver.tokens(generation)) for generation in generations] == [20, 20, 20]
    assert driver.core.stats().preemptions <= 60


def test_failing_is_the_last_resort(hash_engine: Any, hash_text: HashText) -> None:
    """Only what cannot go on though all others stand back fails, with what it needs and what there is."""
    driver = hash_engine(num_pages=10, swap_pages=0)
    driver.publish(range(300, 308))  # two pages that nothing can be taken from
    driver.settle()
    run_id = driver.open_run()
    fitting = driver.generate(driver.create(run_id, range(100, 120)), max_tokens=8)
    outgrowing = driver.generate(driver.create(run_id, range(28)), max_tokens=12)
    driver.settle()

    assert driver.tokens(fitting) == hash_text(range(100, 120), 8)
    error = driver.failure(outgrowing)
    assert error.code == ErrorCode.KV_EXHAUSTED
    assert "needs 9 pages" in error.message
    assert "8 of 10" in error.message
    assert len(driver.tokens(outgrowing)) == 5


@pytest.mark.parametrize("swap_pages", [0, 5])
def test_pages_that_were_found_can_be_all_there_are(hash_engine: Any, hash_text: HashText, swap_pages: int) -> None:
    """All pages are found, and shared with idle contexts: the last is computed into without one for a copy."""
    driver = hash_engine(num_pages=3, swap_pages=swap_pages, costs=COMPUTING_IS_CHEAP, prefix_cache=True)
    run = driver.open_run()
    prompt = list(range(3 * driver.info.page_size))
    idle = driver.create(run, prompt)
    driver.flush(idle)
    driver.settle()
    driver.fork(idle, len(prompt))

    generation = driver.generate(driver.create(run, prompt), max_tokens=1)
    driver.settle()

    assert driver.failures == []
    assert driver.tokens(generation) == hash_text(prompt, 1)


def test_published_pages_stay(hash_engine: Any, hash_text: HashText) -> None:
    """A context that shares a published prefix gives up its own pages, and not those of the prefix."""
    driver = hash_engine(num_pages=12, swap_pages=100, costs=SWAP_IS_CHEAP)
    driver.publish(range(300, 316))
    driver.settle()
    run_id = driver.open_run()
    sharing = driver.create(run_id, [*range(300, 316), *range(8)])
    driver.flush(sharing)
    driver.settle()
    driver.flush(driver.create(run_id, range(100, 132)))
    driver.settle()
    page_table = driver.core._contexts.get(sharing).page_table
    assert (page_table.num_swapped, len(page_table.page_ids)) == (2, 6)
    generation = driver.generate(sharing, max_tokens=3)
    driver.settle()

    assert driver.tokens(generation) == hash_text([*range(300, 316), *range(8)], 3)


def test_a_limit_of_pages_counts_what_is_swapped(hash_engine: Any) -> None:
    """A run cannot hold more than its limit by having others push its pages out."""
    driver = hash_engine(num_pages=12, swap_pages=100, costs=SWAP_IS_CHEAP)
    limited, other = driver.open_run(max_pages=8), driver.open_run(tenant="other")
    driver.flush(driver.create(limited, range(20)))
    driver.settle()
    driver.flush(driver.create(other, range(40)))
    driver.settle()
    assert driver.core.stats().pages_swapped > 0
    driver.flush(driver.create(limited, range(100, 116)))
    driver.settle()

    (limit,) = driver.limits_reached
    assert (limit.limit, limit.used, limit.allowed) == ("kv_pages", 9, 8)


@pytest.mark.parametrize("runner", ["fused", "transformers"])
@pytest.mark.parametrize("swap_bytes", [0, 1 << 24])
def test_real_models_go_on_undisturbed(
    tiny_engine: Any,
    reference: Callable[..., list[int]],
    runner: str,
    swap_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both runners, swapped or computed again: every generation has the tokens that transformers gives it alone."""
    monkeypatch.setattr("tartlet_engine.core.Costs", lambda: SWAP_IS_CHEAP)
    driver = tiny_engine(kv_pages=9, swap_bytes=swap_bytes, runner=runner, max_batch_tokens=24)
    runs = [driver.open_run(tenant=name) for name in ("one", "two")]
    prompts = [list(range(base, base + 30)) for base in (10, 60, 110, 160)]
    generations = [
        driver.generate(driver.create(runs[index % 2], prompt), max_tokens=40) for index, prompt in enumerate(prompts)
    ]
    driver.settle()

    assert driver.failures == []
    stats = driver.core.stats()
    assert stats.preemptions > 0
    assert (stats.recomputed_tokens > 0) == (swap_bytes == 0)
    assert [driver.tokens(generation) for generation in generations] == [reference(prompt, 40) for prompt in prompts]


@pytest.mark.parametrize("swap_bytes", [0, 1 << 24])
def test_the_fused_runner_resumes_bit_for_bit(tiny_engine: Any, swap_bytes: int) -> None:
    """Log-probabilities of a preempted generation are the same bits as those of one that had the cache to itself."""

    def logprobs(kv_pages: int) -> tuple[list[Any], int]:
        driver = tiny_engine(kv_pages=kv_pages, swap_bytes=swap_bytes, runner="fused", max_batch_tokens=24)
        run_id = driver.open_run()
        ids = [
            driver.generate(driver.create(run_id, range(base, base + 30)), num_logprobs=3, max_tokens=40)
            for base in (10, 60, 110)
        ]
        driver.settle()
        chunks = [e for e in driver.events if isinstance(e, Chunk)]
        found = [[chunk.logprobs for chunk in chunks if chunk.generation_id == generation_id] for generation_id in ids]
        return found, driver.core.stats().preemptions

    preempted, num_preemptions = logprobs(kv_pages=8)
    undisturbed, _ = logprobs(kv_pages=100)

    assert num_preemptions > 0
    assert preempted == undisturbed


def test_who_fails_is_told_what_others_cannot_give_up(hash_engine: Any) -> None:
    """Contexts with evicted tokens stay where there is no swap space; the message counts without their pages."""
    driver = hash_engine(num_pages=12, prefix_cache=False)
    run = driver.open_run()
    driver.evict(driver.create(run, list(range(10, 34))), 4, 8)
    driver.settle()
    failing = driver.generate(driver.create(run, [7] * 40), max_tokens=2)
    driver.settle()

    error = driver.failure(failing)
    assert error.code is ErrorCode.KV_EXHAUSTED
    assert error.message.startswith("a context of 40 tokens needs 10 pages; 7 of 12 can be had")
