"""Speculation in the engine: the same tokens in fewer steps, and nothing taken from anybody."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartlet_engine import draft_rows
from tartlet_engine.api import Chunk, ConstraintKind, FinishReason, Speculation
from tartlet_engine.constraints.matcher import Matcher
from tartlet_engine.fairness import DECODE_COST, PREFILL_COST

PROMPT = list(range(20, 33))


def expecting(token_ids: list[int], **options: int) -> Speculation:
    return Speculation(expected_token_ids=tuple(token_ids), **options)


def corrupted(token_ids: list[int], every: int) -> list[int]:
    return [7 if i % every == every - 1 else token_id for i, token_id in enumerate(token_ids)]


def outcome(driver: Any, generation: int) -> list[Any]:
    """Tokens, text, log-probabilities and the end of a generation."""
    chunks = [e for e in driver.events if isinstance(e, Chunk) and e.generation_id == generation]
    finished = driver.finished(generation)
    logprobs = [position for chunk in chunks for position in chunk.logprobs]
    return [driver.tokens(generation), driver.text(generation), logprobs, finished.reason, finished.stop_string]


def test_an_expected_text_takes_few_steps(hash_engine: Any, hash_text: Any) -> None:
    """What comes is what the model says; each step yields a draft and a token more, and the usage tells of it."""
    driver = hash_engine()
    text = hash_text(PROMPT, 60)
    generation = driver.generate(
        driver.create(driver.open_run(), PROMPT), max_tokens=60, speculation=expecting(text, max_draft=8)
    )
    driver.settle()

    assert driver.tokens(generation) == text
    assert driver.core.stats().steps <= 1 + 60 / 5
    usage = driver.finished(generation).usage
    assert usage.draft_tokens == usage.accepted_tokens > 45
    assert usage.generated_tokens == 60
    stats = driver.core.stats()
    assert (stats.draft_tokens, stats.accepted_tokens) == (usage.draft_tokens, usage.accepted_tokens)
    assert (stats.prefill_tokens, stats.generated_tokens) == (len(PROMPT), 60)


@pytest.mark.parametrize("every", [2, 3, 7])
def test_wrong_guesses_change_nothing(hash_engine: Any, hash_text: Any, every: int) -> None:
    """A text that is wrong everywhere, or here and there, costs rows, and they are accounted for."""
    driver = hash_engine()
    text = hash_text(PROMPT, 60)
    generation = driver.generate(
        driver.create(driver.open_run(), PROMPT), max_tokens=60, speculation=expecting(corrupted(text, every))
    )
    driver.settle()

    assert driver.tokens(generation) == text
    usage = driver.finished(generation).usage
    assert usage.accepted_tokens < usage.draft_tokens
    assert driver.runner.num_computed_tokens == len(PROMPT) + 59 + usage.draft_tokens - usage.accepted_tokens


def test_the_context_goes_on_from_what_was_accepted(hash_engine: Any, hash_text: Any) -> None:
    """Afterwards the context holds the tokens and no others: a second generation goes on, and its pages are found."""
    driver = hash_engine()
    run = driver.open_run()
    text = hash_text(PROMPT, 50)
    context = driver.create(run, PROMPT)
    driver.generate(context, max_tokens=30, speculation=expecting(corrupted(text, 9)))
    driver.settle()
    second = driver.generate(context, max_tokens=20, speculation=expecting(text[30:]))
    driver.settle()
    assert driver.tokens(second) == text[30:]
    other = driver.generate(driver.create(run, PROMPT + text), max_tokens=5)
    driver.settle()

    assert driver.tokens(other) == hash_text(PROMPT + text, 5)
    assert driver.finished(other).usage.cached_tokens >= len(PROMPT) + 45


OPTIONS: list[dict[str, Any]] = [
    {"temperature": 1.0, "seed": 5},
    {"temperature": 1.3, "seed": 6, "top_p": 0.9, "repetition_penalty": 1.2, "frequency_penalty": 0.5},
    {"presence_penalty": 3.0, "logit_bias": ((44, 2.0),)},
    {"temperature": 0.8, "seed": 7, "num_logprobs": 3},
    {"temperature": 1.0, "seed": 8, "ignore_eos": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
@pytest.mark.parametrize("settings", [{}, {"quantize": "int8"}], ids=["float32", "int8"])
def test_any_sampling_gives_the_same(tiny_engine: Any, options: dict[str, Any], settings: dict[str, Any]) -> None:
    """Drafted and not: tokens, text and log-probabilities to the bit, with every sampler; alone and together."""
    driver = tiny_engine(runner="fused", **settings)
    run = driver.open_run()
    plain = driver.generate(driver.create(run, PROMPT), max_tokens=60, **options)
    driver.settle()
    tokens = driver.tokens(plain)
    speculations = [
        Speculation(ngram=1, max_draft=4),
        expecting(tokens, max_draft=16),
        expecting(corrupted(tokens, 5)),
        expecting(corrupted(tokens, 11), ngram=2),
    ]
    alone = []
    for speculation in speculations:
        context = driver.create(run, PROMPT)
        alone.append(driver.generate(context, max_tokens=60, speculation=speculation, **options))
        driver.settle()
    together = [
        driver.generate(driver.create(run, PROMPT), max_tokens=60, speculation=speculation, **options)
        for speculation in [*speculations, None]
    ]
    driver.settle()

    for generation in alone + together:
        assert outcome(driver, generation) == outcome(driver, plain)
    accepted = [driver.finished(generation).usage.accepted_tokens for generation in alone]
    assert accepted[1] > len(tokens) / 2
    assert all(accepted[2:])


def test_models_that_torch_runs_draft_too(tiny_engine: Any, reference: Any) -> None:
    """Greedy tokens are transformers' own, though the last bits of logits may differ from those without drafts."""
    driver = tiny_engine(runner="transformers")
    text = reference(PROMPT, 30)
    speculation = expecting(corrupted(text, 11), max_draft=16)
    generation = driver.generate(driver.create(driver.open_run(), PROMPT), max_tokens=30, speculation=speculation)
    driver.settle()

    assert driver.tokens(generation) == text
    assert driver.finished(generation).usage.accepted_tokens > 15


def test_every_end_comes_where_it_comes_without(tiny_engine: Any) -> None:
    """Stop tokens, stop strings, lengths and limits end it in the midst of a draft, and leave what they leave."""
    driver = tiny_engine(runner="fused")
    run = driver.open_run()
    plain = driver.generate(driver.create(run, PROMPT), max_tokens=40)
    driver.settle()
    tokens, text = driver.tokens(plain), driver.text(plain)
    stops: list[dict[str, Any]] = [{"max_tokens": count} for count in (1, 2, 5, 6, 7)]
    stops += [{"token_ids": (tokens[index],), "max_tokens": 40} for index in (3, 8, 20)]
    stops += [{"strings": (text[index : index + 4],), "max_tokens": 40} for index in (9, 30)]
    for stop in stops:
        pairs = []
        for speculation in (None, expecting(tokens)):
            context = driver.create(run, PROMPT)
            first = driver.generate(context, speculation=speculation, **stop)
            driver.settle()
            more = driver.generate(context, max_tokens=5)
            driver.settle()
            pairs.append((outcome(driver, first), outcome(driver, more)))
        assert pairs[0] == pairs[1], stop


def test_a_run_that_may_not_have_more_tokens_ends_at_the_same(hash_engine: Any, hash_text: Any) -> None:
    """The limit of generated tokens counts accepted guesses like others."""
    driver = hash_engine()
    text = hash_text(PROMPT, 30)
    generation = driver.generate(
        driver.create(driver.open_run(max_generated_tokens=17), PROMPT), max_tokens=30, speculation=expecting(text)
    )
    driver.settle()

    assert driver.tokens(generation) == text[:17]
    (reached,) = driver.limits_reached
    assert (reached.limit, reached.used) == ("generated_tokens", 18)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_constraints_hold_for_guesses(tiny_engine: Any, temperature: float) -> None:
    """Masks and forced tokens are those of each row: a schema gives the same text, guessed rightly or wrongly."""
    driver = tiny_engine(runner="fused")
    run = driver.open_run()
    regex = r'\{"name": "[a-z]{3,9}", "list": \[([0-9]{1,3}, ){3}[0-9]\], "kind": "(first|second)"\}'
    constraint = driver.compile(run, ConstraintKind.REGEX, regex)
    options = {"constraint_id": constraint, "max_tokens": 80, "temperature": temperature, "ignore_eos": False}
    outcomes = []
    tokens: list[int] = []
    for speculation in (None, expecting([]), "right", "wrong"):
        if speculation == "right":
            speculation = expecting(tokens)
        elif speculation == "wrong":
            speculation = expecting(corrupted(tokens, 4), ngram=1)
        generation = driver.generate(driver.create(run, PROMPT), speculation=speculation, **options)
        driver.settle()
        tokens = tokens or driver.tokens(generation)
        outcomes.append(outcome(driver, generation))

    assert outcomes[0][3] == FinishReason.COMPLETE
    assert all(each == outcomes[0] for each in outcomes)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_late_masks_stop_a_draft_and_nothing_else(tiny_engine: Any, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A mask that is not there in time leaves the row's logits for a later step: the same text comes of it."""
    driver = tiny_engine(runner="fused")
    run = driver.open_run()
    constraint = driver.compile(run, ConstraintKind.REGEX, r"([a-z]{2,4} [0-9]{1,3}, ){4}end")
    options = {"constraint_id": constraint, "max_tokens": 60, "temperature": 1.0, "ignore_eos": False}
    plain = driver.generate(driver.create(run, PROMPT), **options)
    driver.settle()
    numbers, num_late = random.Random(seed), 0
    wait_mask = Matcher.wait_mask

    def often_late(matcher: Matcher, timeout_s: float) -> bool:
        nonlocal num_late
        is_there = wait_mask(matcher, timeout_s) and numbers.random() < 0.5
        num_late += not is_there
        return is_there

    monkeypatch.setattr(Matcher, "wait_mask", often_late)
    drafted = driver.generate(
        driver.create(run, PROMPT), speculation=expecting(corrupted(driver.tokens(plain), 9)), **options
    )
    driver.settle()

    assert outcome(driver, drafted) == outcome(driver, plain)
    assert num_late > 3
    assert driver.finished(drafted).usage.accepted_tokens > 0


def test_drafts_take_no_pages_and_no_turns(hash_engine: Any, hash_text: Any) -> None:
    """With no page free, a draft is as long as the last page has room; while others wait there is none."""
    text = hash_text(PROMPT, 24)
    driver = hash_engine(num_pages=12, page_size=4, max_batch_tokens=16)
    run = driver.open_run()
    others = [driver.generate(driver.create(run, [60 + i]), max_tokens=3) for i in range(2)]
    generation = driver.generate(driver.create(run, PROMPT), max_tokens=24, speculation=expecting(text, max_draft=32))
    driver.settle()
    assert driver.tokens(generation) == text
    assert [driver.tokens(other) for other in others] == [hash_text([60 + i], 3) for i in range(2)]
    assert driver.core.stats().preemptions == 0

    assert max(driver.runner.batch_sizes) <= 16


def test_what_fails_gives_everything_back(hash_engine: Any, hash_text: Any) -> None:
    """A step that fails with a draft in it ends the generation, and its context can be used again."""
    driver = hash_engine()
    text = hash_text(PROMPT, 30)
    context = driver.create(driver.open_run(), PROMPT)
    generation = driver.generate(context, max_tokens=30, speculation=expecting(text))
    driver.step(2)
    so_far = driver.tokens(generation)
    driver.runner.failures = 1
    driver.step()
    assert "out of order" in driver.failure(generation).message
    driver.core.check_integrity()
    again = driver.generate(context, max_tokens=10, speculation=expecting(text))
    driver.settle()

    assert driver.tokens(again) == hash_text(PROMPT + so_far, 10)


def test_a_guess_that_was_wrong_is_charged_as_computed(hash_engine: Any, hash_text: Any) -> None:
    """A tenant pays for tokens that it gets, and for rows that were computed in vain."""
    text = hash_text(PROMPT, 30)
    charged, expected = [], []
    for speculation in (None, expecting(text), expecting(corrupted(text, 3), ngram=1)):
        driver = hash_engine(prefix_cache=False)
        run = driver.open_run()
        generation = driver.generate(driver.create(run, PROMPT), max_tokens=30, speculation=speculation)
        driver.settle()
        usage = driver.finished(generation).usage
        wasted = usage.draft_tokens - usage.accepted_tokens
        share = driver.core._handler.accounts[run].share
        charged.append(share.counter)
        expected.append(PREFILL_COST * (len(PROMPT) + wasted) + DECODE_COST * 30)

    # Pages are charged a little for every step.
    assert charged == pytest.approx(expected, abs=0.5)
    assert expected[1] == expected[0] < expected[2]


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_schedule_gives_the_undisturbed_text(hash_engine: Any, hash_text: Any, seed: int) -> None:
    """Drafted or not, forked, cancelled, preempted and found again on few pages: every token is the model's."""
    numbers = random.Random(seed)
    driver = hash_engine(
        num_pages=numbers.choice([10, 16, 40]),
        page_size=4,
        max_batch_tokens=numbers.choice([7, 24]),
        swap_pages=numbers.choice([0, 8]),
        runs_ahead=numbers.random() < 0.3,
    )
    runs = [driver.open_run(tenant=tenant) for tenant in "ab"]
    running: dict[int, tuple[int, list[int]]] = {}
    for _ in range(60):
        if len(running) < 4 and numbers.random() < 0.4:
            prompt = [20 + numbers.randrange(3) for _ in range(numbers.randint(1, 14))]
            count = numbers.randint(1, 20)
            text = hash_text(prompt, count)
            guess = corrupted(text, numbers.choice([1, 2, 5, 100]))
            speculation = numbers.choice([None, expecting(guess, max_draft=numbers.choice([1, 5, 32]), ngram=1)])
            context = driver.create(numbers.choice(runs), prompt)
            generation = driver.generate(context, max_tokens=count, speculation=speculation)
            running[generation] = (context, prompt)
        if running and numbers.random() < 0.1:
            context, _ = running[numbers.choice(list(running))]
            driver.free(driver.fork(context, 1)) if numbers.random() < 0.5 else driver.flush(driver.fork(context, 1))
        if running and numbers.random() < 0.05:
            driver.cancel(numbers.choice(list(running)))
        if driver.core.has_work:
            driver.step()
        driver.core.check_integrity()
        for generation, (context, prompt) in list(running.items()):
            tokens = driver.tokens(generation)
            assert tokens == hash_text(prompt, len(tokens))
            if any(
                getattr(event, "generation_id", None) == generation and not isinstance(event, Chunk)
                for event in driver.events
            ):
                del running[generation]
                driver.free(context)
    driver.settle()
    for run in runs:
        driver.close_run(run)
    stats = driver.core.stats()

    assert (stats.pages_held, stats.pages_swapped, stats.contexts) == (0, 0, 0)


def test_a_run_has_so_many_drafters(hash_engine: Any, hash_text: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations beyond that guess nothing until others have ended; they get the same tokens."""
    monkeypatch.setattr(draft_rows, "MOST_DRAFTERS", 2)
    driver = hash_engine()
    run = driver.open_run()
    prompts = [[60 + i, 61] for i in range(4)]
    generations = [
        driver.generate(driver.create(run, prompt), max_tokens=12, speculation=expecting(hash_text(prompt, 12)))
        for prompt in prompts
    ]
    drafters = driver.core._handler.accounts[run].drafters
    most = 0
    while driver.core.has_work:
        driver.step()
        most = max(most, len(drafters))

    assert most == 2
    assert len(drafters) == 0
    drafted = [driver.finished(generation).usage.draft_tokens for generation in generations]
    assert 0 < max(drafted[2:]) < min(drafted[:2])
    assert [driver.tokens(generation) for generation in generations] == [hash_text(prompt, 12) for prompt in prompts]
