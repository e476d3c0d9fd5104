"""Constrained generation, step by step: masks, forced tokens, ends; with everything else that generations can do."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import pytest

from tartlet_engine.api import Chunk, ConstraintKind, ErrorCode, FinishReason
from tartlet_engine.tokenizer import ModelTokenizer

from .schemas import all_schemas, matches

REGEX, SCHEMA = ConstraintKind.REGEX, ConstraintKind.JSON_SCHEMA
PROMPT = list(range(20, 40))


def constrained(driver: Any, text: str, kind: ConstraintKind = REGEX, prompt: Any = PROMPT, **options: Any) -> int:
    """Start a generation in a run of its own."""
    run = driver.open_run()
    constraint = driver.compile(run, kind, text)
    assert driver.is_done(constraint), driver.failures
    return int(driver.generate(driver.create(run, prompt), constraint_id=constraint, **{"ignore_eos": False} | options))


@pytest.mark.slow
def test_every_output_is_what_its_schema_describes(tiny_engine: Any) -> None:
    """210 schemas, greedy, at temperature 1 and at 3: the tiny model babbles, and all that it ends is valid."""
    driver = tiny_engine(kv_pages=2048)
    run = driver.open_run()
    expected = []
    for number, schema in enumerate(all_schemas()):
        constraint = driver.compile(run, SCHEMA, json.dumps(schema))
        assert driver.is_done(constraint), (schema, driver.failures)
        for temperature in (0.0, 1.0, 3.0):
            context = driver.create(run, PROMPT)
            options = {"temperature": temperature, "seed": number, "max_tokens": 300, "ignore_eos": False}
            expected.append((schema, driver.generate(context, constraint_id=constraint, **options)))
        driver.free_constraint(run, constraint)
    driver.settle()
    num_unfinished = 0
    for schema, generation in expected:
        text, reason = driver.text(generation), driver.finished(generation).reason
        if reason == FinishReason.LENGTH:
            num_unfinished += 1
        else:
            assert matches(json.loads(text), schema), (schema, text)

    assert len(expected) >= 600
    assert num_unfinished <= 0.1 * len(expected)


@pytest.mark.parametrize("temperature", [0.0, 1.0, 5.0])
def test_regexes_match(tiny_engine: Any, temperature: float) -> None:
    """Whatever is sampled matches the whole regex."""
    driver = tiny_engine()
    regexes = [r"[0-9]{3}-[a-z]{2}", r"(yes|no)(, (yes|no)){2}", r"[A-Z][a-z]{2,7} [0-9]+", "[^a-z]{4}", "é+日{1,3}"]
    generations = [
        constrained(driver, regex, temperature=temperature, seed=seed, max_tokens=200)
        for regex in regexes
        for seed in range(3)
    ]
    driver.settle()

    for number, generation in enumerate(generations):
        if driver.finished(generation).reason != FinishReason.LENGTH:
            assert re.fullmatch(regexes[number // 3], driver.text(generation)), driver.text(generation)
    assert all(driver.finished(generation).reason == FinishReason.COMPLETE for generation in generations[:6])


def test_forced_tokens_cost_no_step_of_their_own(hash_engine: Any) -> None:
    """What is forced is computed together with the prompt, is counted apart, and only the choice is sampled."""
    driver = hash_engine()
    generation = constrained(driver, "The quick brown fox (jumps|sleeps) over the lazy dog", max_tokens=100)
    driver.settle()
    finished = driver.finished(generation)

    assert driver.text(generation).startswith("The quick brown fox ")
    assert driver.text(generation).endswith(" over the lazy dog")
    assert finished.reason == FinishReason.COMPLETE
    assert finished.usage.generated_tokens - finished.usage.forced_tokens <= 2
    assert len(driver.runner.batch_sizes) <= 3
    assert finished.usage.generated_tokens == len(driver.tokens(generation))


def test_forced_text_needs_no_model_at_all(hash_engine: Any) -> None:
    """A constraint that is one text is written without a forward pass."""
    driver = hash_engine()
    generation = constrained(driver, '{"const": {"answer": 42}}', SCHEMA)
    driver.settle()

    assert driver.text(generation) == '{"answer": 42}'
    assert driver.runner.num_computed_tokens == 0
    assert driver.finished(generation).usage.forced_tokens == len(driver.tokens(generation))


def test_forced_tokens_are_as_if_filled(tiny_engine: Any, tiny_folder: Any) -> None:
    """After forced tokens it goes on like in a fresh context that was filled with them."""
    driver = tiny_engine()
    generation = constrained(driver, "The quick brown fox[ a-z]{30}", num_logprobs=5, max_tokens=20)
    driver.settle()
    usage, tokens = driver.finished(generation).usage, driver.tokens(generation)
    run = driver.open_run()
    forced = tokens[: usage.forced_tokens]
    left = "The quick brown fox".removeprefix(ModelTokenizer(tiny_folder).decode(forced))
    fresh = driver.generate(
        driver.create(run, PROMPT + forced),
        constraint_id=driver.compile(run, REGEX, left + "[ a-z]{30}"),
        num_logprobs=5,
        max_tokens=20 - len(forced),
    )
    driver.settle()

    assert usage.forced_tokens > 2
    assert driver.finished(fresh).usage.forced_tokens == 0
    assert driver.tokens(fresh) == tokens[usage.forced_tokens :]


def test_log_probabilities_are_under_the_constraint(tiny_engine: Any) -> None:
    """A forced token has the probability 1; the choices of a step add up to 1, and there are no others."""
    driver = tiny_engine()
    generation = constrained(driver, "(a|b)The quick", num_logprobs=10, max_tokens=50)
    driver.settle()
    chunks = [e for e in driver.events if isinstance(e, Chunk) and e.generation_id == generation]
    first, *forced = [position for chunk in chunks for position in chunk.logprobs]

    assert len(forced) == driver.finished(generation).usage.forced_tokens > 1
    assert all(position.chosen.logprob == 0 and position.top == (position.chosen,) for position in forced)
    assert len(first.top) == 2
    assert sum(2.718281828**each.logprob for each in first.top) == pytest.approx(1, abs=1e-4)


def test_the_end_comes_only_where_it_is_allowed(tiny_engine: Any, tiny_folder: Any) -> None:
    """With eos made likely it comes at the first place where the constraint may end, and nowhere else."""
    driver = tiny_engine()
    (eos,) = ModelTokenizer(tiny_folder).eos_token_ids
    generation = constrained(driver, "[a-z]{5}([a-z]{5})*", logit_bias=((eos, 1000.0),), max_tokens=60)
    driver.settle()

    assert driver.finished(generation).reason == FinishReason.EOS
    assert len(driver.text(generation)) % 5 == 0 < len(driver.text(generation))
    assert driver.tokens(generation)[-1] == eos
    assert eos not in driver.tokens(generation)[:-1]


def test_past_the_end_there_is_nothing(tiny_engine: Any, tiny_folder: Any) -> None:
    """Who ignores eos still ends when the constraint has ended, with the reason `complete`."""
    driver = tiny_engine()
    (eos,) = ModelTokenizer(tiny_folder).eos_token_ids
    generation = constrained(driver, "a*", logit_bias=((eos, 1000.0),), ignore_eos=True, max_tokens=60)
    driver.settle()

    assert driver.finished(generation).reason == FinishReason.COMPLETE
    assert driver.tokens(generation) == [eos]


def test_stop_conditions_come_first(hash_engine: Any) -> None:
    """A stop string in forced text ends it there; so does the greatest number of tokens."""
    driver = hash_engine()
    stopped = constrained(driver, "The quick brown fox", strings=("brown",))
    short = constrained(driver, "The quick brown fox", max_tokens=2)
    driver.settle()

    assert driver.text(stopped) == "The quick "
    assert driver.finished(stopped).reason == FinishReason.STOP_STRING
    assert len(driver.tokens(short)) == 2
    assert driver.finished(short).reason == FinishReason.LENGTH


def test_the_run_limit_counts_forced_tokens(hash_engine: Any) -> None:
    """Forced text cannot go past the tokens that a run may generate."""
    driver = hash_engine()
    run = driver.open_run(max_generated_tokens=3)
    constraint = driver.compile(run, REGEX, "The quick brown fox")
    generation = driver.generate(driver.create(run, PROMPT), constraint_id=constraint)
    driver.settle()

    assert len(driver.tokens(generation)) == 3
    assert [event.limit for event in driver.limits_reached] == ["generated_tokens"]


def test_a_mask_that_leaves_nothing_is_an_error(hash_engine: Any) -> None:
    """A position without any allowed token fails that generation by name, and nobody else."""
    driver = hash_engine()
    neighbour = constrained(driver, "[ab]{20}")
    doomed = constrained(driver, "[ab]{20}", prompt=[50])
    generation = driver.core._demands.generations[doomed]

    class Nothing:
        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def unsafe_compute_mask_ptr(self, pointer: int, size: int) -> None:
            generation.matcher._words[:] = 0

    assert generation.matcher.wait_mask(60)
    inner = generation.matcher._follower._matcher
    generation.matcher._follower._matcher = Nothing()
    driver.settle()

    assert driver.failure(doomed).code == ErrorCode.INVALID_ARGUMENT
    assert "no token is allowed" in driver.failure(doomed).message
    assert len(driver.text(neighbour)) == 20


@pytest.mark.parametrize("what", ["mask", "move"])
def test_a_late_mask_delays_its_own_row_only(hash_engine: Any, what: str) -> None:
    """While a mask, or what comes before it, is not there, others' tokens keep coming; then it goes on as ever."""
    driver = hash_engine()
    expected = constrained(driver, "[ab]{20}", seed=1, temperature=1.0)
    driver.settle()
    late = constrained(driver, "[ab]{20}", seed=1, temperature=1.0)
    run = driver.open_run()
    neighbour = driver.generate(driver.create(run, [60, 61]), max_tokens=20)
    gate = threading.Event()
    matcher = driver.core._demands.generations[late].matcher
    assert matcher.wait_mask(60)
    is_late = "consume" if what == "move" else "fill_mask"
    work = getattr(matcher._follower, is_late)

    def wait(*args: Any) -> None:
        assert gate.wait(60)
        work(*args)

    setattr(matcher._follower, is_late, wait)
    matcher._is_quick = what == "mask"
    driver.step(12)
    num_before = len(driver.tokens(late)), len(driver.tokens(neighbour))
    gate.set()
    driver.settle()

    assert num_before[0] <= 1
    assert num_before[1] >= 11
    assert driver.text(late) == driver.text(expected)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_gives_the_same_alone_and_in_a_crowd(tiny_engine: Any, seed: int) -> None:
    """Constrained tokens depend on the seed, not on who else is in the batch."""
    schema = '{"type": "object", "properties": {"a": {"type": "string", "maxLength": 20}}, "required": ["a"]}'
    driver = tiny_engine()
    alone = constrained(driver, schema, SCHEMA, temperature=1.0, seed=seed, max_tokens=80)
    driver.settle()
    crowd = [constrained(driver, schema, SCHEMA, temperature=1.0, seed=each, max_tokens=80) for each in (seed, 5, 6)]
    run = driver.open_run()
    driver.generate(driver.create(run, [70, 71]), max_tokens=40)
    driver.settle()

    assert driver.tokens(crowd[0]) == driver.tokens(alone)


@pytest.mark.parametrize("swap_pages", [0, 64])
def test_preempted_is_undisturbed(hash_engine: Any, swap_pages: int) -> None:
    """Generations that have to give up their pages go on where they were, with their constraint."""
    regexes = [f"[a-{letter}]{{30}}The quick brown fox[0-9]{{10}}" for letter in "bcdefgh"]
    calm = hash_engine(num_pages=400)
    undisturbed = [constrained(calm, regex, prompt=[30 + n]) for n, regex in enumerate(regexes)]
    calm.settle()
    driver = hash_engine(num_pages=30, swap_pages=swap_pages)
    generations = [constrained(driver, regex, prompt=[30 + n]) for n, regex in enumerate(regexes)]
    driver.settle()

    assert driver.core.stats().preemptions > 0
    assert [driver.tokens(each) for each in generations] == [calm.tokens(each) for each in undisturbed]


def test_forks_have_their_own_way(hash_engine: Any) -> None:
    """A fork of a context whose generation is under a constraint is free, or under another one."""
    driver = hash_engine()
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    constraint, digits = driver.compile(run, REGEX, "[ab]{30}"), driver.compile(run, REGEX, "[0-9]{5}")
    parent = driver.generate(context, constraint_id=constraint)
    driver.step(6)
    length = len(PROMPT) + len(driver.tokens(parent))
    fork, other = driver.fork(context, length), driver.fork(context, length)
    free = driver.generate(fork, max_tokens=5)
    numbers = driver.generate(other, constraint_id=digits)
    driver.settle()

    assert re.fullmatch("[ab]{30}", driver.text(parent))
    assert len(driver.tokens(free)) == 5
    assert re.fullmatch("[0-9]{5}", driver.text(numbers))


@pytest.mark.parametrize("num_steps", [0, 1, 4])
def test_cancel_and_free_at_any_time(hash_engine: Any, num_steps: int) -> None:
    """Whenever it is given up, everything is given back."""
    driver = hash_engine()
    cancelled = constrained(driver, "[ab]{50}The quick")
    run = driver.open_run()
    context = driver.create(run, [90, 91])
    freed = driver.generate(context, constraint_id=driver.compile(run, REGEX, "[ab]{50}The quick"))
    closed = constrained(driver, "[ab]{50}The quick", prompt=[80])
    driver.step(num_steps)
    driver.cancel(cancelled)
    driver.free(context)
    driver.close_run(driver.core._demands.generations[closed].sequence.account.run_id)
    driver.settle()

    assert driver.finished(cancelled).reason == FinishReason.CANCELLED
    assert {freed, closed} & set(driver.core._demands.generations) == set()


def test_constrained_rows_do_not_run_ahead(hash_engine: Any) -> None:
    """On a device that works beside the host, their next step waits for the mask; the tokens are the same."""
    plain, ahead = hash_engine(), hash_engine(runs_ahead=True)
    results = []
    for driver in (plain, ahead):
        generation = constrained(driver, "[a-z]{12}The quick[0-9]{4}")
        driver.settle()
        results.append(driver.tokens(generation))

    assert results[0] == results[1]
    assert ahead.runner.num_ahead == 0


@pytest.mark.parametrize("runner", ["fused", "transformers"])
def test_both_runners(tiny_engine: Any, runner: str) -> None:
    """The mask is applied to whatever computes the logits, and penalties and bias come before it."""
    driver = tiny_engine(runner=runner)
    generation = constrained(
        driver, "[a-f]{10}", temperature=1.0, seed=3, repetition_penalty=1.5, logit_bias=((70, 5.0), (100, 50.0))
    )
    driver.settle()

    assert re.fullmatch("[a-f]{10}", driver.text(generation))


def test_the_prefix_cache_serves_constrained_prompts(hash_engine: Any) -> None:
    """A second generation of the same prompt and constraint finds what the first has computed."""
    driver = hash_engine()
    run = driver.open_run()
    constraint = driver.compile(run, REGEX, "The quick brown fox[ab]{8}")
    usages = []
    for _ in range(2):
        generation = driver.generate(driver.create(run, PROMPT), constraint_id=constraint)
        driver.settle()
        usages.append(driver.finished(generation).usage)

    assert usages[0].cached_tokens == 0
    assert usages[1].cached_tokens == len(PROMPT)
