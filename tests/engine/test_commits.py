"""Commits: what tokens do to their generation and to its run."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_engine.api import Chunk, FinishReason, PositionLogprobs, TokenLogprob
from tartlet_engine.commits import Commits
from tartlet_engine.sampler import Sampled

PROMPT = list(range(20, 30))


@pytest.fixture
def parts(hash_engine: Any) -> tuple[Any, Commits]:
    """A driver, and commits into its engine."""
    driver = hash_engine()
    return driver, Commits(driver.core._demands)


def start(driver: Any, run_id: int | None = None, **options: Any) -> Any:
    """A generation that has not begun to sample."""
    run_id = driver.open_run() if run_id is None else run_id
    generation_id = driver.generate(driver.create(run_id, PROMPT), **options)
    return driver.core._demands.generations[generation_id]


def test_a_sampled_token_is_appended_counted_charged_and_told(parts: Any) -> None:
    """One chunk with its text and log-probabilities; the tenant is charged for a decode."""
    driver, commits = parts
    generation = start(driver)
    charged = generation.sequence.account.share.counter
    logprobs = PositionLogprobs(TokenLogprob(40, -1.0), ())
    commits.sampled(generation, Sampled(40, logprobs))
    driver.do()

    assert generation.sequence.token_ids == [*PROMPT, 40]
    assert (commits.num_tokens, generation.num_forced) == (1, 0)
    assert generation.sequence.account.share.counter > charged
    (chunk,) = [event for event in driver.events if isinstance(event, Chunk)]
    assert (chunk.token_ids, chunk.logprobs) == ((40,), (logprobs,))


def test_forced_tokens_come_in_one_chunk_and_are_not_charged_as_sampled(parts: Any) -> None:
    """They are charged when they are computed; each is certain."""
    driver, commits = parts
    generation = start(driver, num_logprobs=3)
    charged = generation.sequence.account.share.counter

    assert commits.forced(generation, [40, 41, 42])
    driver.do()
    assert generation.num_forced == commits.num_tokens == generation.num_generated == 3
    assert generation.sequence.account.share.counter == charged
    (chunk,) = [event for event in driver.events if isinstance(event, Chunk)]
    assert chunk.token_ids == (40, 41, 42)
    assert [position.chosen for position in chunk.logprobs] == [TokenLogprob(n, 0.0) for n in (40, 41, 42)]


def test_what_follows_the_last_token_is_dropped(parts: Any) -> None:
    """Forced tokens end at a stop condition."""
    driver, commits = parts
    generation = start(driver, token_ids=(41,))

    assert not commits.forced(generation, [40, 41, 42])
    driver.do()
    assert generation.sequence.token_ids == [*PROMPT, 40, 41]
    assert driver.finished(generation.generation_id).reason == FinishReason.STOP_TOKEN
    assert driver.finished(generation.generation_id).usage.forced_tokens == 2


def test_a_run_gets_no_more_than_its_limit(parts: Any) -> None:
    """What fits is told of, then the run is stopped."""
    driver, commits = parts
    generation = start(driver, driver.open_run(max_generated_tokens=2))

    assert not commits.forced(generation, [40, 41, 42])
    driver.do()
    assert driver.tokens(generation.generation_id) == [40, 41]
    assert [(event.used, event.allowed) for event in driver.limits_reached] == [(3, 2)]


def test_complete_shows_the_text_that_was_held_back(parts: Any) -> None:
    """The beginning of a stop string that did not come belongs to the text."""
    driver, commits = parts
    generation = start(driver, strings=("abc",))
    commits.forced(generation, [67, 68])  # "ab"
    driver.do()
    assert driver.text(generation.generation_id) == ""
    commits.complete(generation)
    driver.do()

    assert driver.finished(generation.generation_id).reason == FinishReason.COMPLETE
    assert driver.text(generation.generation_id) == "ab"
