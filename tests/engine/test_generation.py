"""Generations: stop conditions, log-probabilities, seeds and usage, through the whole engine with the tiny model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tartlet_engine.api import Chunk, FinishReason

PROMPT = [5 + 7 * i % 400 for i in range(21)]

Reference = Callable[..., list[int]]


def test_sixteen_at_once_with_chunked_prefill(tiny_engine: Any, reference: Reference) -> None:
    """Greedy tokens equal transformers', alone and when sixteen run mixed with prefill chunks."""
    driver = tiny_engine(max_batch_tokens=24)
    run_id = driver.open_run()
    prompts = [[3 + (11 * i + 5 * k) % 500 for i in range(1 + 9 * k % 50)] for k in range(16)]
    generations = []
    for prompt in prompts:
        generations.append(driver.generate(driver.create(run_id, prompt), max_tokens=24))
        driver.step()
    driver.settle()

    for number, (prompt, generation) in enumerate(zip(prompts, generations, strict=True)):
        assert driver.tokens(generation) == reference(prompt, 24), number


def test_a_fork_equals_a_fresh_context(tiny_engine: Any, reference: Reference) -> None:
    """Forks of a computed, an uncomputed and a generated context go on as fresh ones would; the parent too."""
    driver = tiny_engine(page_size=4)
    run_id = driver.open_run()
    parent = driver.create(run_id, PROMPT)
    early = driver.fork(parent, len(PROMPT))
    on_parent = driver.generate(parent, max_tokens=10)
    driver.settle()
    generated = driver.tokens(on_parent)
    late = driver.fork(parent, len(PROMPT) + 10)
    short = driver.fork(parent, 9)
    driver.append(early, [7, 8])
    cases = {
        driver.generate(early, max_tokens=12): [*PROMPT, 7, 8],
        driver.generate(late, max_tokens=12): PROMPT + generated,
        driver.generate(short, max_tokens=12): PROMPT[:9],
        driver.generate(parent, max_tokens=12): PROMPT + generated,
    }
    driver.settle()

    assert generated == reference(PROMPT, 10)
    for generation, tokens in cases.items():
        assert driver.tokens(generation) == reference(tokens, 12)


def test_a_seed_gives_the_same_tokens_alone_and_in_a_crowd(tiny_engine: Any) -> None:
    """A sampled generation does not depend on what else is in the batch; another seed gives other tokens."""
    options = {"temperature": 0.9, "top_p": 0.9, "repetition_penalty": 1.1, "max_tokens": 20}
    alone = tiny_engine()
    first = alone.generate(alone.create(alone.open_run(), PROMPT), seed=77, **options)
    alone.settle()
    crowd = tiny_engine(max_batch_tokens=16)
    run_id = crowd.open_run()
    others = [crowd.generate(crowd.create(run_id, PROMPT), seed=seed, **options) for seed in range(5)]
    crowd.step(3)
    second = crowd.generate(crowd.create(run_id, PROMPT), seed=77, **options)
    crowd.settle()

    assert crowd.tokens(second) == alone.tokens(first)
    assert len({tuple(crowd.tokens(other)) for other in others}) > 1


def test_eos_and_stop_tokens(tiny_engine: Any, reference: Reference) -> None:
    """A stop token ends a generation and stays in the context; its text is shown, an eos token's is not."""
    expected = reference(PROMPT, 12)
    stop_id = expected[6]
    driver = tiny_engine()
    context = driver.create(driver.open_run(), PROMPT)
    generation = driver.generate(context, token_ids=(stop_id,))
    driver.settle()
    going_on = driver.generate(context, max_tokens=3)
    driver.settle()

    first_at = expected.index(stop_id)
    assert driver.tokens(generation) == expected[: first_at + 1]
    assert driver.finished(generation).reason == FinishReason.STOP_TOKEN
    assert driver.tokens(going_on) == reference(PROMPT + expected[: first_at + 1], 3)


def test_a_biased_eos_ends_it(tiny_engine: Any) -> None:
    """The model's eos token ends a generation without text; with `ignore_eos` it goes on."""
    driver = tiny_engine()
    run_id = driver.open_run()
    (eos_id,) = driver.info.eos_token_ids
    bias = ((eos_id, 1000.0),)
    ended = driver.generate(driver.create(run_id, PROMPT), logit_bias=bias, ignore_eos=False)
    ignored = driver.generate(driver.create(run_id, PROMPT), logit_bias=bias, max_tokens=4)
    driver.settle()

    assert (driver.tokens(ended), driver.text(ended)) == ([eos_id], "")
    assert driver.finished(ended).reason == FinishReason.EOS
    assert driver.tokens(ignored) == [eos_id] * 4
    assert driver.finished(ignored).reason == FinishReason.LENGTH


def test_stop_strings_across_tokens(tiny_engine: Any) -> None:
    """The text ends before the stop string, which is reported, wherever tokens end."""
    driver = tiny_engine()
    run_id = driver.open_run()
    free = driver.generate(driver.create(run_id, PROMPT), max_tokens=24)
    driver.settle()
    text = driver.text(free)
    stop = text[9:14]
    generation = driver.generate(driver.create(run_id, PROMPT), max_tokens=24, strings=(stop,))
    driver.settle()

    assert driver.text(generation) == text[: text.index(stop)]
    finished = driver.finished(generation)
    assert (finished.reason, finished.stop_string) == (FinishReason.STOP_STRING, stop)


def test_logprobs_on_request(tiny_engine: Any) -> None:
    """Each token comes with its own log-probability and the most likely ones, of which greedy takes the first."""
    driver = tiny_engine()
    generation = driver.generate(driver.create(driver.open_run(), PROMPT), num_logprobs=3, max_tokens=5)
    driver.settle()
    chunks = [event for event in driver.events if isinstance(event, Chunk) and event.token_ids]

    assert len(chunks) == 5
    for chunk in chunks:
        (position,) = chunk.logprobs
        assert position.chosen == position.top[0]
        assert (position.chosen.token_id,) == chunk.token_ids
        assert 0 >= position.top[0].logprob >= position.top[1].logprob >= position.top[2].logprob
    assert driver.finished(generation).reason == FinishReason.LENGTH


@pytest.mark.parametrize("max_tokens", [1, 5])
def test_usage(tiny_engine: Any, max_tokens: int) -> None:
    """Usage counts the prompt, what of it was there, what was generated, and the pages at the end."""
    driver = tiny_engine(page_size=4)
    context = driver.create(driver.open_run(), PROMPT)
    first = driver.generate(context, max_tokens=max_tokens)
    driver.settle()
    driver.append(context, [9, 10])
    second = driver.generate(context, max_tokens=max_tokens)
    driver.settle()
    length = len(PROMPT) + max_tokens
    usages = [driver.finished(generation).usage for generation in (first, second)]

    assert [usage.prompt_tokens for usage in usages] == [len(PROMPT), length + 2]
    assert [usage.cached_tokens for usage in usages] == [0, length - 1]
    assert [usage.generated_tokens for usage in usages] == [max_tokens, max_tokens]
    # The token sampled last is not computed, so it needs no page yet.
    assert [usage.pages for usage in usages] == [-(-(length - 1) // 4), -(-(length + 1 + max_tokens) // 4)]
    for usage in usages:
        assert 0 < usage.first_token_ns <= usage.total_ns
