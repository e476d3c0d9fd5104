"""Steps: what a fork costs, what kept logits save, and who is hurt when something goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tartlet_engine.api import ErrorCode, FinishReason

HashText = Callable[[Sequence[int], int], list[int]]
PROMPT = list(range(20, 42))  # 22 tokens: five full pages of four, and a half


@pytest.mark.parametrize("prompt_len", [20, 22])
def test_forks_share_pages_and_prefill(hash_engine: Any, hash_text: HashText, prompt_len: int) -> None:
    """N forks of a P-page prompt compute it once, hold P pages before and P + N after each wrote a token."""
    driver = hash_engine(num_pages=200, page_size=4)
    prompt = PROMPT[:prompt_len]
    parent = driver.create(driver.open_run(), prompt)
    forks = [driver.fork(parent, prompt_len) for _ in range(8)]
    driver.settle()
    num_pages = -(-prompt_len // 4)
    assert (driver.num_held, driver.runner.num_computed_tokens) == (num_pages, prompt_len)

    for number, fork in enumerate(forks):
        driver.append(fork, [100 + number])
    generations = [driver.generate(fork, max_tokens=1) for fork in forks]
    driver.settle()
    assert driver.num_held == num_pages + 8
    assert driver.runner.num_computed_tokens == prompt_len + 8
    for number, generation in enumerate(generations):
        usage = driver.finished(generation).usage
        assert driver.tokens(generation) == hash_text([*prompt, 100 + number], 1)
        assert (usage.prompt_tokens, usage.cached_tokens) == (prompt_len + 1, prompt_len)
        assert (usage.pages, usage.shared_pages) == ((prompt_len + 4) // 4, prompt_len // 4)


def test_forks_sample_their_first_token_from_the_parents_logits(hash_engine: Any, hash_text: HashText) -> None:
    """Generations on forks of a computed context need no forward row for their first token."""
    driver = hash_engine()
    parent = driver.create(driver.open_run(), PROMPT)
    forks = [driver.fork(parent, len(PROMPT)) for _ in range(5)]
    driver.settle()
    generations = [driver.generate(fork, max_tokens=1) for fork in (*forks, parent)]
    driver.settle()

    assert driver.runner.num_computed_tokens == len(PROMPT)
    assert driver.num_held == 6
    for generation in generations:
        assert driver.tokens(generation) == hash_text(PROMPT, 1)
        assert driver.finished(generation).usage.cached_tokens == len(PROMPT)


def test_a_truncated_context_computes_one_token_again(hash_engine: Any, hash_text: HashText) -> None:
    """After truncate the last token's logits are gone: just that token is computed again."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), PROMPT)
    driver.flush(context)
    driver.settle()
    driver.truncate(context, 13)
    generation = driver.generate(context, max_tokens=4)
    driver.settle()

    assert driver.tokens(generation) == hash_text(PROMPT[:13], 4)
    assert driver.finished(generation).usage.cached_tokens == 12
    assert driver.runner.num_computed_tokens == len(PROMPT) + 1 + 3


def test_a_fork_of_a_running_generation(hash_engine: Any, hash_text: HashText) -> None:
    """A fork taken while the parent generates goes on from there, and leaves the parent alone."""
    driver = hash_engine()
    parent = driver.create(driver.open_run(), PROMPT)
    generation = driver.generate(parent, max_tokens=12)
    driver.step(5)
    so_far = driver.tokens(generation)
    child = driver.fork(parent, len(PROMPT) + len(so_far))
    driver.append(child, [7])
    on_child = driver.generate(child, max_tokens=6)
    driver.settle()

    assert 0 < len(so_far) < 12
    assert driver.tokens(generation) == hash_text(PROMPT, 12)
    assert driver.tokens(on_child) == hash_text([*PROMPT, *so_far, 7], 6)


def test_a_chain_of_forks_shares_what_the_first_computes(hash_engine: Any, hash_text: HashText) -> None:
    """Forks of forks that are not computed yet: one prefill, and flushes and generations on all of them end."""
    driver = hash_engine(max_batch_tokens=8)
    chain = [driver.create(driver.open_run(), PROMPT)]
    for _ in range(2000):
        chain.append(driver.fork(chain[-1], len(PROMPT)))
    operations = [driver.flush(context) for context in chain[::500]]
    generation = driver.generate(chain[-1], max_tokens=2)
    driver.settle()

    assert all(driver.is_done(operation) for operation in operations)
    assert driver.tokens(generation) == hash_text(PROMPT, 2)
    assert driver.runner.num_computed_tokens == len(PROMPT) + 1


@pytest.mark.parametrize("ending", ["free", "truncate"])
def test_forks_do_not_need_their_parent(hash_engine: Any, hash_text: HashText, ending: str) -> None:
    """If the parent goes away before it is computed, one fork computes the prompt for all of them."""
    driver = hash_engine(max_batch_tokens=4)
    parent = driver.create(driver.open_run(), PROMPT)
    forks = [driver.fork(parent, len(PROMPT)) for _ in range(5)]
    driver.step(2)
    if ending == "free":
        driver.free(parent)
    else:
        driver.truncate(parent, 2)
    generations = [driver.generate(fork, max_tokens=3) for fork in forks]
    driver.settle()

    assert all(driver.tokens(generation) == hash_text(PROMPT, 3) for generation in generations)
    assert driver.runner.num_computed_tokens == len(PROMPT) + 5 * 2


@pytest.mark.parametrize("stage", ["before", "prefill", "decode"])
def test_cancel_takes_effect_at_the_next_step(hash_engine: Any, hash_text: HashText, stage: str) -> None:
    """A cancelled generation ends with what it has, wherever it is, and its context can be used again."""
    driver = hash_engine(max_batch_tokens=8)
    context = driver.create(driver.open_run(), PROMPT)
    generation = driver.generate(context)
    driver.step({"before": 0, "prefill": 2, "decode": 7}[stage])
    computed = driver.runner.num_computed_tokens
    driver.cancel(generation)
    driver.settle()
    tokens = driver.tokens(generation)

    assert driver.finished(generation).reason == FinishReason.CANCELLED
    assert driver.runner.num_computed_tokens == computed
    assert tokens == hash_text(PROMPT, {"before": 0, "prefill": 0, "decode": 5}[stage])
    again = driver.generate(context, max_tokens=3)
    driver.settle()
    assert driver.tokens(again) == hash_text([*PROMPT, *tokens], 3)


def test_waiting_for_pages_and_cancelled(hash_engine: Any) -> None:
    """A generation that waits for pages can be cancelled, and holds none."""
    driver = hash_engine(num_pages=8, page_size=4)
    run_id = driver.open_run()
    running = driver.generate(driver.create(run_id, PROMPT), max_tokens=8)
    driver.step()
    waiting = driver.generate(driver.create(run_id, PROMPT[1:]), max_tokens=2)
    driver.step()
    assert (driver.core.stats().running, driver.core.stats().waiting) == (1, 1)
    driver.cancel(waiting)
    driver.settle()

    assert driver.finished(waiting).usage.pages == 0
    assert len(driver.tokens(running)) == 8


def test_the_one_who_waits_goes_on_when_pages_come_free(hash_engine: Any, hash_text: HashText) -> None:
    """A context that goes away makes room for a generation that waits."""
    driver = hash_engine(num_pages=8, page_size=4)
    run_id = driver.open_run()
    first = driver.create(run_id, PROMPT)
    driver.generate(first, max_tokens=8)
    waiting = driver.generate(driver.create(run_id, PROMPT[1:]), max_tokens=2)
    driver.step(3)
    assert driver.tokens(waiting) == []
    driver.free(first)
    driver.settle()

    assert driver.tokens(waiting) == hash_text(PROMPT[1:], 2)


@pytest.mark.parametrize("swap_pages", [0, 100])
def test_generations_that_outgrow_the_pool_take_turns(hash_engine: Any, hash_text: HashText, swap_pages: int) -> None:
    """Generations that together need more pages than there are: none fails, and each gets its own tokens."""
    driver = hash_engine(num_pages=12, page_size=4, swap_pages=swap_pages)
    run_id = driver.open_run()
    prompts = [PROMPT[number : number + 4] for number in range(3)]
    generations = [driver.generate(driver.create(run_id, prompt), max_tokens=20) for prompt in prompts]
    driver.settle()

    assert driver.failures == []
    for generation, prompt in zip(generations, prompts, strict=True):
        assert driver.tokens(generation) == hash_text(prompt, 20)
    assert driver.core.stats().preemptions > 0


def test_a_generation_that_outgrows_the_whole_pool_fails(hash_engine: Any) -> None:
    """One that can never get the page it needs fails at once, not after the others have ended."""
    driver = hash_engine(num_pages=4, page_size=4)
    run_id = driver.open_run()
    generation = driver.generate(driver.create(run_id, PROMPT[:10]))
    driver.settle()

    assert len(driver.tokens(generation)) == 7
    assert driver.failure(generation).code == ErrorCode.KV_EXHAUSTED
    assert driver.num_held == 0


def test_only_the_one_that_outgrows_the_whole_pool_fails(hash_engine: Any, hash_text: HashText) -> None:
    """Its pages come free with it, so whoever waits for pages goes on."""
    driver = hash_engine(num_pages=4, page_size=4)
    run_id = driver.open_run()
    greedy = driver.generate(driver.create(run_id, PROMPT[:11]), max_tokens=30)
    driver.step(3)
    modest = driver.generate(driver.create(run_id, PROMPT[:4]), max_tokens=2)
    driver.settle()

    assert driver.failure(greedy).code == ErrorCode.KV_EXHAUSTED
    assert driver.tokens(modest) == hash_text(PROMPT[:4], 2)


def test_a_failing_forward_pass_fails_those_who_took_part(hash_engine: Any, hash_text: HashText) -> None:
    """Generations of the failed step fail as internal; their contexts and all others go on."""
    driver = hash_engine(max_batch_tokens=16)
    run_id = driver.open_run()
    first, second = driver.create(run_id, PROMPT[:16]), driver.create(run_id, PROMPT[:16])
    failing = driver.generate(first, max_tokens=3)
    waiting = driver.generate(second, max_tokens=3)
    driver.runner.failures = 1
    driver.settle()
    again = driver.generate(first, max_tokens=3)
    driver.settle()

    assert driver.failure(failing).code == ErrorCode.INTERNAL
    assert "out of order" in driver.failure(failing).message
    assert driver.tokens(waiting) == driver.tokens(again) == hash_text(PROMPT[:16], 3)


def test_forks_survive_a_failing_forward_pass(hash_engine: Any, hash_text: HashText) -> None:
    """If computing the parent fails, a fork tries for itself and the others."""
    driver = hash_engine()
    parent = driver.create(driver.open_run(), PROMPT)
    forks = [driver.fork(parent, len(PROMPT)) for _ in range(3)]
    generations = [driver.generate(fork, max_tokens=2) for fork in forks]
    driver.runner.failures = 1
    driver.settle()

    assert driver.failures == []
    assert all(driver.tokens(generation) == hash_text(PROMPT, 2) for generation in generations)
    assert driver.runner.num_computed_tokens == len(PROMPT) + 3


def test_run_limits_stop_all_of_the_run_and_nobody_else(hash_engine: Any, hash_text: HashText) -> None:
    """The token limit is exact over all generations of a run; one event tells of it, and others are not touched."""
    driver = hash_engine()
    limited, free = driver.open_run(max_generated_tokens=10), driver.open_run()
    generations = [driver.generate(driver.create(limited, PROMPT), max_tokens=8) for _ in range(3)]
    other = driver.generate(driver.create(free, PROMPT), max_tokens=8)
    driver.settle()

    assert sum(len(driver.tokens(generation)) for generation in generations) == 10
    (limit,) = driver.limits_reached
    assert (limit.run_id, limit.limit, limit.used, limit.allowed) == (limited, "generated_tokens", 11, 10)
    assert driver.tokens(other) == hash_text(PROMPT, 8)
    refused = driver.generate(driver.create(limited, [5]), max_tokens=1)
    assert driver.failure(refused).code == ErrorCode.QUOTA_EXCEEDED
    driver.close_run(limited)
    assert driver.num_held == 8


def test_page_limit_of_a_run(hash_engine: Any) -> None:
    """A run that needs one page more than it may hold is stopped, though the pool has room."""
    driver = hash_engine()
    run_id = driver.open_run(max_pages=7)
    driver.generate(driver.create(run_id, PROMPT))
    driver.settle()

    (limit,) = driver.limits_reached
    assert (limit.limit, limit.used, limit.allowed) == ("kv_pages", 8, 7)
    assert driver.core.stats().running == 0


def test_context_length_ends_a_generation(hash_engine: Any, hash_text: HashText) -> None:
    """A generation ends with the reason length where the context is full, and there is no room for another token."""
    driver = hash_engine(context_len=25)
    context = driver.create(driver.open_run(), PROMPT)
    generation = driver.generate(context)
    driver.settle()
    without_room = driver.generate(context)
    driver.settle()

    assert driver.tokens(generation) == hash_text(PROMPT, 3)
    assert driver.finished(generation).reason == FinishReason.LENGTH
    assert driver.finished(without_room).reason == FinishReason.LENGTH
    assert driver.finished(without_room).usage.generated_tokens == 0


def test_flush_computes_and_keeps(hash_engine: Any, hash_text: HashText) -> None:
    """A flush is answered when all is computed; a generation afterwards computes nothing for its first token."""
    driver = hash_engine(max_batch_tokens=5)
    context = driver.create(driver.open_run(), PROMPT)
    operation = driver.flush(context)
    driver.step(4)
    assert not driver.is_done(operation)
    driver.step()
    assert driver.is_done(operation)
    at_once = driver.flush(context)
    assert driver.is_done(at_once)
    generation = driver.generate(context, max_tokens=1)
    driver.settle()

    assert driver.tokens(generation) == hash_text(PROMPT, 1)
    assert driver.runner.num_computed_tokens == len(PROMPT)
