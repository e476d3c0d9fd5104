"""Steps launched ahead: the same tokens, pages and events as without, whatever comes in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tartlet_engine.api import Chunk, FinishReason, Speculation

HashText = Callable[[Sequence[int], int], list[int]]
PROMPT = list(range(20, 42))


def test_decodes_run_ahead(hash_engine: Any, hash_text: HashText) -> None:
    """Every decode is launched before the host has read its token, and none is computed twice or in vain."""
    driver = hash_engine(runs_ahead=True)
    run_id = driver.open_run()
    generations = [driver.generate(driver.create(run_id, [5 + k, 7]), max_tokens=9) for k in range(3)]
    driver.settle()

    for k, generation in enumerate(generations):
        assert driver.tokens(generation) == hash_text([5 + k, 7], 9)
    assert driver.runner.num_ahead == 3 * 8
    assert driver.runner.num_computed_tokens == 3 * (2 + 8)


def test_a_stop_that_is_found_late_leaks_nothing(hash_engine: Any, hash_text: HashText) -> None:
    """A stop token is seen when one more token is computed: that is dropped, its page given back, and nobody hears."""
    expected = hash_text(PROMPT, 7)
    plain, ahead = hash_engine(), hash_engine(runs_ahead=True)
    finished = []
    for driver in (plain, ahead):
        context = driver.create(driver.open_run(), PROMPT)
        # 22 tokens and 3: the token after the stop would be the first of a new page.
        generation = driver.generate(context, token_ids=(expected[2],))
        driver.settle()
        finished.append((driver.finished(generation), driver.tokens(generation), driver.num_held))
        again = driver.generate(context, max_tokens=4)
        driver.settle()
        assert driver.tokens(again) == hash_text([*PROMPT, *expected[:3]], 4)

    (event, tokens, num_held), (late_event, late_tokens, late_held) = finished
    assert late_event.reason == FinishReason.STOP_TOKEN
    assert late_tokens == tokens == expected[:3]
    assert late_held == num_held
    assert (late_event.usage.pages, late_event.usage.generated_tokens) == (event.usage.pages, 3)
    assert ahead.runner.num_computed_tokens == plain.runner.num_computed_tokens + 1


@pytest.mark.parametrize("ending", ["cancel", "free", "close"])
def test_what_ends_in_between_gives_its_pages_back(hash_engine: Any, hash_text: HashText, ending: str) -> None:
    """A generation that is cancelled, or whose context or run goes away, while its next token is computed."""
    driver = hash_engine(runs_ahead=True, num_pages=40, max_batch_tokens=64)
    keeper, loser = driver.open_run(), driver.open_run()
    kept = driver.generate(driver.create(keeper, PROMPT), max_tokens=12)
    context = driver.create(loser, PROMPT[11:])
    lost = driver.generate(context)
    driver.step(3)
    before = driver.tokens(lost)
    if ending == "cancel":
        driver.cancel(lost)
    elif ending == "free":
        driver.free(context)
    else:
        driver.close_run(loser)
    driver.settle()

    assert driver.tokens(lost) == before == hash_text(PROMPT[11:], 3)
    assert driver.tokens(kept) == hash_text(PROMPT, 12)
    others = 4 if ending == "cancel" else 0  # 13 computed tokens
    assert driver.num_held == 9 + others


def test_the_last_one_cancelled(hash_engine: Any) -> None:
    """If nobody demands anything any more, one step gives the pages back, and the engine rests."""
    driver = hash_engine(runs_ahead=True)
    generation = driver.generate(driver.create(driver.open_run(), PROMPT[:11]))
    driver.step(2)  # 13 tokens: the next one begins a page
    driver.cancel(generation)
    assert driver.core.has_work
    driver.settle()

    assert driver.num_held == driver.finished(generation).usage.pages == 3


def test_prompts_that_arrive_are_computed_beside(hash_engine: Any, hash_text: HashText) -> None:
    """A prompt that comes in while a step is ahead: what is computed stays, the prompt is added to the step."""
    driver = hash_engine(runs_ahead=True)
    run_id = driver.open_run()
    first = driver.generate(driver.create(run_id, PROMPT), max_tokens=10)
    driver.step(3)
    computed = driver.runner.num_computed_tokens
    second = driver.generate(driver.create(run_id, [9, 8, 7]), max_tokens=5)
    driver.step()
    assert driver.runner.num_computed_tokens == computed + 3 + 2  # the prompt, and the next of both
    driver.settle()

    assert driver.tokens(first) == hash_text(PROMPT, 10)
    assert driver.tokens(second) == hash_text([9, 8, 7], 5)
    assert driver.runner.num_computed_tokens == len(PROMPT) + 9 + 3 + 4


def test_a_fork_in_between(hash_engine: Any, hash_text: HashText) -> None:
    """A fork shares the page into which the parent's next token was written ahead: both go on as they should."""
    driver = hash_engine(runs_ahead=True)
    parent = driver.create(driver.open_run(), PROMPT)
    generation = driver.generate(parent, max_tokens=9)
    driver.step(2)
    so_far = driver.tokens(generation)
    child = driver.fork(parent, len(PROMPT) + len(so_far))
    driver.append(child, [7])
    on_child = driver.generate(child, max_tokens=6)
    driver.settle()

    assert driver.tokens(generation) == hash_text(PROMPT, 9)
    assert driver.tokens(on_child) == hash_text([*PROMPT, *so_far, 7], 6)


@pytest.mark.parametrize("penalty", ["repetition_penalty", "presence_penalty"])
def test_what_depends_on_the_token_waits_for_it(hash_engine: Any, penalty: str) -> None:
    """Penalties count the token that was sampled last: such generations do not run ahead."""
    driver = hash_engine(runs_ahead=True)
    generation = driver.generate(driver.create(driver.open_run(), PROMPT), max_tokens=5, **{penalty: 1.5})
    driver.settle()

    assert len(driver.tokens(generation)) == 5
    assert driver.runner.num_ahead == 0


def test_what_drafts_does_not_run_ahead(hash_engine: Any, hash_text: HashText) -> None:
    """Which row comes next depends on the token, so nothing is launched; without it, others run ahead again."""
    driver = hash_engine(runs_ahead=True)
    run_id = driver.open_run()
    speculation = Speculation(expected_token_ids=tuple(hash_text(PROMPT, 12)))
    drafted = driver.generate(driver.create(run_id, PROMPT), max_tokens=12, speculation=speculation)
    other = driver.generate(driver.create(run_id, PROMPT[:5]), max_tokens=12)
    driver.step(3)
    assert driver.runner.num_ahead == 0
    driver.settle()

    assert driver.runner.num_ahead > 0
    assert driver.tokens(drafted) == hash_text(PROMPT, 12)
    assert driver.tokens(other) == hash_text(PROMPT[:5], 12)


def test_no_page_is_taken_from_anybody(hash_engine: Any, hash_text: HashText) -> None:
    """When pages are short, or the run may hold no more, nothing is reserved ahead; all ends as without."""
    driver = hash_engine(runs_ahead=True, num_pages=6, page_size=4, prefix_cache=False)
    generation = driver.generate(driver.create(driver.open_run(), PROMPT[:20]), max_tokens=4)
    limited = driver.open_run(max_pages=1)
    driver.settle()
    assert driver.tokens(generation) == hash_text(PROMPT[:20], 4)

    small = hash_engine(runs_ahead=True)
    limited = small.open_run(max_pages=1)
    breached = small.generate(small.create(limited, PROMPT[:3]), max_tokens=4)
    small.settle()
    assert small.tokens(breached) == hash_text(PROMPT[:3], 2)
    assert [event.limit for event in small.limits_reached] == ["kv_pages"]


def test_a_launch_that_fails_fails_in_its_own_step(hash_engine: Any, hash_text: HashText) -> None:
    """If the next step cannot be launched ahead, the tokens at hand are told of, and that step is done as always."""
    driver = hash_engine(runs_ahead=True)
    context = driver.create(driver.open_run(), PROMPT)
    generation = driver.generate(context, max_tokens=6)
    driver.step()
    driver.runner.failures = 1
    driver.settle()

    assert driver.tokens(generation) == hash_text(PROMPT, 6)
    assert driver.failures == []


def test_seeds_and_chunks_are_as_without(hash_engine: Any) -> None:
    """Sampled generations of several lengths give, chunk by chunk, what they give without running ahead."""
    told = []
    for runs_ahead in (False, True):
        driver = hash_engine(runs_ahead=runs_ahead)
        run_id = driver.open_run()
        lengths = (3, 8, 5, 1)
        generations = [
            driver.generate(
                driver.create(run_id, PROMPT[k:]), max_tokens=length, temperature=3.0, seed=k, num_logprobs=1
            )
            for k, length in enumerate(lengths)
        ]
        driver.settle()
        events = [event for event in driver.events if isinstance(event, Chunk)]
        told.append([(generations.index(e.generation_id), e.token_ids, e.text, e.logprobs) for e in events])

    assert told[0] == told[1]
