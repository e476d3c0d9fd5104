"""Stepped generations in the engine's steps: answers, waiting, pages, logits, and neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_engine.api import Chunk, ErrorCode, Finished, FinishReason, Splice
from tartlet_engine.stepping import rows

PROMPT = list(range(20, 30))


def start(driver: Any, prompt: Any = PROMPT, **options: Any) -> tuple[int, int]:
    """A context in a run of its own, and a stepped generation on it."""
    context = driver.create(driver.open_run(), prompt)
    return context, driver.steps(context, **options)


def test_without_conditions_it_is_a_plain_generation(hash_engine: Any, hash_text: Any) -> None:
    """Answers that say nothing but to go on give the tokens of `Generate`, one a step."""
    driver = hash_engine()
    context, steps = start(driver)
    outcomes = [driver.next(steps) for _ in range(8)]

    assert [outcome.sampled for outcome in outcomes] == hash_text(PROMPT, 8)
    assert all(outcome.token_ids == (outcome.sampled,) and not outcome.backtrack for outcome in outcomes)
    assert driver.held(context) == PROMPT + hash_text(PROMPT, 8)


@pytest.mark.parametrize(
    "penalties", [{}, {"repetition_penalty": 1.5, "frequency_penalty": 0.7, "presence_penalty": 1}]
)
def test_the_same_seed_gives_the_same_tokens_as_a_plain_generation(tiny_engine: Any, penalties: Any) -> None:
    """Random numbers, penalties and log-probabilities are those of a plain generation."""
    driver = tiny_engine()
    options = {"temperature": 1.3, "seed": 7, "num_logprobs": 2, **penalties}
    plain = driver.generate(driver.create(driver.open_run(), PROMPT), max_tokens=12, **options)
    driver.settle()
    _, steps = start(driver, **options)
    outcomes = [driver.next(steps) for _ in range(12)]

    chunks = [event for event in driver.events if isinstance(event, Chunk)]
    assert [outcome.sampled for outcome in outcomes] == driver.tokens(plain)
    assert [outcome.logprobs for outcome in outcomes] == [chunk.logprobs[0] for chunk in chunks]
    assert "".join(outcome.text for outcome in outcomes) == driver.text(plain)[: len(driver.text(plain))]


def test_who_waits_for_an_answer_makes_no_work(hash_engine: Any) -> None:
    """While a program thinks, the engine rests: nothing is computed, and nothing is active."""
    driver = hash_engine()
    _, steps = start(driver)
    driver.next(steps)
    driver.settle()
    num_steps = driver.core.stats().steps

    assert not driver.core.has_work
    assert driver.core.stats().running == 0
    assert driver.runner.num_computed_tokens == len(PROMPT) + 1  # the token of the outcome is computed meanwhile
    driver.answer(steps)
    assert driver.core.has_work
    driver.settle()
    assert driver.core.stats().steps <= num_steps + 2


def test_beginning_to_wait_is_progress(hash_engine: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Steps on contexts that are computed already wait at once, many in a row: nobody takes it for a fault."""
    driver = hash_engine()
    run = driver.open_run()
    for number in range(20):
        context = driver.create(run, [40, number])
        driver.flush(context)
        driver.settle()
        driver.steps(context)
        driver.settle()

    assert not caplog.records


def test_an_answer_in_time_joins_the_very_next_step(hash_engine: Any) -> None:
    """Stepped and plain generations get their tokens in the same steps, in batches of both, if programs are quick."""
    driver = hash_engine()
    stepped = [start(driver, [40 + i])[1] for i in range(3)]
    plain = driver.generate(driver.create(driver.open_run(), PROMPT), max_tokens=20)
    driver.step()
    for _ in range(10):
        for steps in stepped:
            driver.answer(steps)
        driver.step()

    assert [len(driver.outcomes(steps)) for steps in stepped] == [10] * 3
    assert len(driver.tokens(plain)) == 11
    assert driver.runner.batch_sizes[-9:] == [4] * 9


def test_the_outcome_is_there_before_the_step_is_computed(hash_engine: Any) -> None:
    """What is sampled from kept logits is told of before the forward pass that computes it, and right before it."""
    driver = hash_engine()
    _, steps = start(driver)
    driver.settle()
    told: list[Any] = []
    driver.core.before_pass(lambda: told.append((driver.core.take_events(), driver.runner.num_computed_tokens)))
    driver.answer(steps)
    num_computed = driver.runner.num_computed_tokens
    driver.core.sample_answered()
    assert told == [], "there is still something to do before the pass"
    driver.core.step()

    (((outcome,), num_computed_then),) = told
    assert outcome.sampled is not None
    assert num_computed_then == num_computed
    assert driver.runner.num_computed_tokens == num_computed + 1


def test_a_late_answer_delays_nobody_else(hash_engine: Any) -> None:
    """A plain generation gets one token a step, whether a neighbour answers or not, and the same ones."""
    driver = hash_engine()
    plain = driver.generate(driver.create(driver.open_run(), PROMPT), max_tokens=30)
    _, steps = start(driver, [50])
    counts = []
    for number in range(20):
        if number % 5 == 0:
            driver.answer(steps)
        driver.step()
        counts.append(len(driver.tokens(plain)))

    assert counts == list(range(1, 21))
    assert len(driver.outcomes(steps)) == 4


def test_two_answers_at_once_are_refused(hash_engine: Any) -> None:
    """The second answer before the outcome is refused, and the first counts."""
    driver = hash_engine()
    _, steps = start(driver)
    driver.answer(steps)
    driver.answer(steps, sample=False)
    driver.settle()

    assert [error.code for error in driver.refusals(steps)] == [ErrorCode.UNAVAILABLE]
    assert len(driver.outcomes(steps)) == 1


def test_conditions_hold_for_one_step_only(tiny_engine: Any) -> None:
    """Allowed tokens, bias and temperature of an answer are gone with its step."""
    driver = tiny_engine()
    _, steps = start(driver, temperature=0.0)
    allowed = driver.next(steps, allow=(100, 101))
    biased = driver.next(steps, bias=((77, 500.0), (77, 400.0)))
    hot = [driver.next(steps, temperature=50.0).sampled for _ in range(4)]
    tokens = [allowed.sampled, biased.sampled, *hot]
    after = driver.next(steps).sampled
    plain = driver.generate(driver.create(driver.open_run(), [*PROMPT, *tokens]), max_tokens=1)
    driver.settle()

    assert allowed.sampled in (100, 101)
    assert biased.sampled == 77
    assert driver.tokens(plain) == [after]
    assert len(set(hot)) > 1


def test_a_bias_adds_to_the_penalties_and_bias_of_the_generation(tiny_engine: Any) -> None:
    """Both biases count, and for this step alone."""
    driver = tiny_engine()
    _, steps = start(driver, logit_bias=((77, 500.0),), frequency_penalty=1.0)

    assert driver.next(steps, bias=((77, -900.0), (78, 300.0))).sampled == 78
    assert driver.next(steps).sampled == 77


def test_its_pages_can_be_taken_while_it_waits(hash_engine: Any, hash_text: Any) -> None:
    """Under pressure, a stepped generation that waits gives its pages, and goes on as if nothing had been."""
    for swap_pages in (0, 16):
        driver = hash_engine(num_pages=8, swap_pages=swap_pages)
        context, steps = start(driver, range(20, 40))
        first = driver.next(steps)
        driver.settle()
        neighbour = driver.generate(driver.create(driver.open_run(), range(60, 84)), max_tokens=8)
        driver.settle()
        held = driver.core._contexts.get(context).page_table
        assert len(held.page_ids) - held.num_swapped < 6
        others = [driver.next(steps).sampled for _ in range(3)]

        assert [first.sampled, *others] == hash_text(range(20, 40), 4)
        assert driver.tokens(neighbour) == hash_text(range(60, 84), 8)


def test_kept_logits_are_bounded(hash_engine: Any, hash_text: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits of too many that wait are given up, and computed again from the last token."""
    monkeypatch.setattr(rows, "MOST_KEPT_BYTES", 2 * 512 * 4)
    driver = hash_engine()
    started = [start(driver, [40 + i, 50]) for i in range(6)]
    driver.settle()
    other = driver.generate(driver.create(driver.open_run(), PROMPT), max_tokens=3)
    driver.settle()
    kept = [context for context, _ in started if driver.logits(context) is not None]
    sampled = [driver.next(steps).sampled for _, steps in started]

    assert len(kept) == 2
    assert sampled == [hash_text([40 + i, 50], 1)[0] for i in range(6)]
    assert len(driver.tokens(other)) == 3


def test_logits_that_cannot_be_computed_again_are_kept(
    hash_engine: Any, hash_text: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an eviction the last token's logits still know what it saw, however many others wait."""
    monkeypatch.setattr(rows, "MOST_KEPT_BYTES", 0)
    driver = hash_engine()
    context = driver.create(driver.open_run(), PROMPT)
    driver.evict(context, 2, 6)
    driver.settle()
    steps = driver.steps(context)
    driver.settle()
    _, others = start(driver, [50, 51])
    driver.next(others)
    driver.next(others)

    assert [driver.next(steps).sampled] == hash_text(PROMPT, 1)


def test_kept_logits_do_not_hold_a_whole_step(hash_engine: Any) -> None:
    """After the next step, a row that waits has a copy of its own."""
    driver = hash_engine()
    context, _ = start(driver)
    other = driver.generate(driver.create(driver.open_run(), [50]), max_tokens=5)
    driver.step()
    assert driver.logits(context).untyped_storage().nbytes() > driver.logits(context).nbytes
    driver.step()
    logits = driver.logits(context)
    driver.settle()

    assert logits.untyped_storage().nbytes() == logits.nbytes
    assert driver.finished(other)


def test_stopping_ends_it_at_once(hash_engine: Any) -> None:
    """A cancel ends it while it waits, with a word, and the context can be used again."""
    driver = hash_engine()
    context, steps = start(driver)
    driver.next(steps)
    driver.settle()
    driver.cancel(steps)
    plain = driver.generate(context, max_tokens=2)
    driver.settle()

    assert driver.finished(steps).reason == FinishReason.CANCELLED
    assert driver.finished(steps).usage.generated_tokens == 1
    assert len(driver.tokens(plain)) == 2


def test_closing_its_run_frees_everything(hash_engine: Any) -> None:
    """A run that is closed while its stepped generations wait, compute or are answered leaves nothing behind."""
    driver = hash_engine(prefix_cache=False)
    run = driver.open_run()
    contexts = [driver.create(run, [30 + i] * 6) for i in range(3)]
    waits, answered, _ = [driver.steps(context) for context in contexts]
    driver.next(waits)
    driver.fork_steps(waits)
    driver.answer(answered)
    driver.close_run(run)
    driver.settle()

    assert driver.num_held == 0
    assert not driver.core.has_work


def test_it_ends_by_its_stop_conditions(hash_engine: Any, hash_text: Any) -> None:
    """Stop tokens, stop strings and the greatest length end it, and the outcome says so."""
    driver = hash_engine()
    tokens = hash_text(PROMPT, 5)
    _, by_token = start(driver, token_ids=(tokens[2],))
    _, by_length = start(driver, max_tokens=4)
    for steps, count in ((by_token, 3), (by_length, 4)):
        for _ in range(count):
            driver.next(steps)

    assert driver.outcomes(by_token)[-1].finish_reason == FinishReason.STOP_TOKEN
    assert driver.outcomes(by_length)[-1].finish_reason == FinishReason.LENGTH
    assert driver.finished(by_length).reason == FinishReason.LENGTH
    assert next(e for e in driver.events if isinstance(e, Finished)).generation_id == by_token


def test_an_answer_for_what_has_ended_is_nothing(hash_engine: Any) -> None:
    """An answer that crosses the end of its generation is dropped."""
    driver = hash_engine()
    _, steps = start(driver, max_tokens=1)
    driver.next(steps)
    driver.answer(steps)
    driver.settle()

    assert not driver.failures
    assert not driver.refusals(steps)


def test_a_failed_forward_pass_fails_it(hash_engine: Any) -> None:
    """What was in a step that failed is told so; who waited for an answer is not concerned."""
    driver = hash_engine()
    _, waits = start(driver)
    driver.next(waits)
    driver.settle()
    _, doomed = start(driver)
    driver.answer(doomed)
    driver.runner.failures = 1
    driver.settle()

    assert driver.failure(doomed).code == ErrorCode.INTERNAL
    assert driver.next(waits).sampled is not None


def test_an_error_while_sampling_is_told_and_over(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of our own while answers are carried out ends those generations, and not the engine."""
    driver = hash_engine()
    _, steps = start(driver)
    driver.settle()
    driver.answer(steps)
    with monkeypatch.context() as patch:
        patch.setattr("tartlet_engine.step.launch_sampling_each", lambda *_: 1 / 0)
        driver.core.sample_answered()
    driver.settle()

    assert driver.failure(steps).code == ErrorCode.INTERNAL
    assert not driver.core.has_work


def test_the_run_limit_counts_what_is_sampled_and_forced(hash_engine: Any) -> None:
    """Sampled tokens count even if replaced, forced ones as well; past the limit the run is stopped by name."""
    driver = hash_engine()
    run = driver.open_run(max_generated_tokens=5)
    steps = driver.steps(driver.create(run, PROMPT))
    driver.next(steps, Splice(backtrack=1))
    driver.next(steps, Splice(token_ids=(60, 61)))
    driver.next(steps, Splice(token_ids=(62, 63)), sample=False)

    assert driver.outcomes(steps)[-1].token_ids == (62,)
    assert [event.limit for event in driver.limits_reached] == ["generated_tokens"]


def test_adapters_are_kept(hash_engine: Any, hash_text: Any) -> None:
    """Steps of a context with an adapter are computed with it, forks of it, too."""
    driver = hash_engine()
    adapter = driver.info.adapters[0]
    context = driver.create(driver.open_run(), PROMPT, adapter)
    steps = driver.steps(context)
    expected = hash_text(PROMPT, 3, adapter)
    sampled = [driver.next(steps).sampled]
    _, child = driver.fork_steps(steps)
    assert sampled + [driver.next(child).sampled for _ in range(2)] == expected
