"""Splices: what they mean, and that a context is afterwards what a fresh one with its tokens is."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_engine.api import FinishReason, Splice
from tartlet_engine.tokenizer import ModelTokenizer

PROMPT = list(range(20, 30))


def start(driver: Any, prompt: Any = PROMPT, **options: Any) -> tuple[int, int]:
    """A context in a run of its own, and a stepped generation on it."""
    context = driver.create(driver.open_run(), prompt)
    return context, driver.steps(context, **options)


def test_backtrack_and_forced_tokens_in_one_step(hash_engine: Any, hash_text: Any) -> None:
    """Two tokens back and three forward are one token more; the outcome says 2 and 3."""
    driver = hash_engine()
    context, steps = start(driver)
    for _ in range(4):
        driver.next(steps)
    before = driver.held(context)
    outcome = driver.next(steps, Splice(backtrack=2, token_ids=(60, 61, 62)), sample=False)

    assert (outcome.backtrack, outcome.token_ids, outcome.sampled) == (2, (60, 61, 62), None)
    assert driver.held(context) == [*before[:-2], 60, 61, 62]
    assert driver.next(steps).sampled == hash_text([*before[:-2], 60, 61, 62], 1)[0]


def test_the_sampled_token_is_discarded(hash_engine: Any, hash_text: Any) -> None:
    """With sampling, a backtrack of 1 drops the sampled token alone; the outcome still names it."""
    driver = hash_engine()
    context, steps = start(driver)
    (expected,) = hash_text(PROMPT, 1)
    outcome = driver.next(steps, Splice((expected,), 1, (60, 61)))

    assert (outcome.sampled, outcome.backtrack, outcome.token_ids) == (expected, 0, (60, 61))
    assert driver.held(context) == [*PROMPT, 60, 61]
    assert driver.next(steps).sampled == hash_text([*PROMPT, 60, 61], 1)[0]


def test_a_splice_whose_condition_does_not_hold_changes_nothing(hash_engine: Any, hash_text: Any) -> None:
    """The sampled token is appended as if there were no splice; the first that holds counts."""
    driver = hash_engine()
    context, steps = start(driver)
    first, second = hash_text(PROMPT, 2)
    plain = driver.next(steps, Splice((first + 1, first - 1), 1, (60,)))
    chosen = driver.next(steps, Splice((first,), 1, (60,)), Splice((second,), 0, (61,)), Splice((), 1, (62,)))

    assert (plain.token_ids, plain.backtrack) == ((first,), 0)
    assert chosen.token_ids == (second, 61)
    assert driver.held(context) == [*PROMPT, first, second, 61]


def test_a_splice_can_go_back_past_the_sampled_token(hash_engine: Any) -> None:
    """A backtrack of 3 with sampling drops the sampled token and two before it, and reports two."""
    driver = hash_engine()
    context, steps = start(driver)
    outcome = driver.next(steps, Splice((), 3, (60,)))

    assert outcome.backtrack == 2
    assert driver.held(context) == [*PROMPT[:-2], 60]


def test_rejecting_without_replacement_samples_again_from_the_same_logits(tiny_engine: Any) -> None:
    """Discarded and nothing appended: nothing is computed again, and the next sample is another draw."""
    driver = tiny_engine()
    context, steps = start(driver, temperature=5.0)
    draws = {driver.next(steps, Splice((), 1)).sampled for _ in range(20)}
    num_steps = driver.core.stats().prefill_tokens

    assert driver.held(context) == PROMPT
    assert num_steps == len(PROMPT)
    assert len(draws) > 10


def test_going_back_into_the_prompt(hash_engine: Any, hash_text: Any) -> None:
    """What was filled can be taken back as well, its pages come back, and what follows is as in a fresh context."""
    driver = hash_engine(prefix_cache=False)
    context, steps = start(driver, range(20, 44))
    for _ in range(3):
        driver.next(steps)
    outcome = driver.next(steps, Splice(backtrack=20), sample=False)
    assert outcome.backtrack == 20
    assert driver.held(context) == list(range(20, 27))
    sampled = [driver.next(steps).sampled for _ in range(3)]
    driver.settle()

    assert sampled == hash_text(range(20, 27), 3)
    assert driver.num_held == -(-10 // driver.info.page_size)


def test_going_back_without_going_on_computes_the_last_token_again(hash_engine: Any, hash_text: Any) -> None:
    """After a backtrack alone, the next token is sampled after what is left."""
    driver = hash_engine()
    _, steps = start(driver)
    tokens = [driver.next(steps).sampled for _ in range(4)]
    driver.next(steps, Splice(backtrack=2), sample=False)

    assert [driver.next(steps).sampled for _ in range(2)] == tokens[2:] == hash_text(PROMPT, 4)[2:]


def test_everything_can_be_replaced_but_not_dropped(hash_engine: Any, hash_text: Any) -> None:
    """A context keeps a token at least; that may be a spliced one."""
    driver = hash_engine()
    context, steps = start(driver)
    driver.answer(steps, Splice(backtrack=10), sample=False)
    driver.answer(steps, Splice(backtrack=11, token_ids=(60,)), sample=False)
    assert len(driver.refusals(steps)) == 2
    assert "cannot go back 11 tokens: the context has 10" in driver.refusals(steps)[1].message
    driver.next(steps, Splice(backtrack=10, token_ids=(60,)), sample=False)

    assert driver.held(context) == [60]
    assert driver.next(steps).sampled == hash_text([60], 1)[0]


def test_forced_texts_merge_into_one_pass(hash_engine: Any, hash_text: Any) -> None:
    """Tokens forced one after the other, and the prompt before them, are computed in one step."""
    driver = hash_engine()
    _, steps = start(driver)
    for token_id in range(60, 70):
        driver.next(steps, Splice(token_ids=(token_id,)), sample=False)
    assert driver.runner.num_computed_tokens == 0
    outcome = driver.next(steps)
    driver.settle()

    assert outcome.sampled == hash_text([*PROMPT, *range(60, 70)], 1)[0]
    assert driver.runner.batch_sizes == [20, 1]


def test_forced_and_no_op_steps_are_not_counted_as_sampled(hash_engine: Any) -> None:
    """Usage tells sampled and forced tokens apart; a step that does nothing counts nothing; replaced ones count."""
    driver = hash_engine()
    _, steps = start(driver, max_tokens=6)
    driver.next(steps, sample=False)
    driver.next(steps, Splice(token_ids=(60, 61)), sample=False)
    driver.next(steps, Splice((), 1, (62,)))
    driver.next(steps, Splice((), 0, (63, 64)))
    usage = driver.finished(steps).usage

    assert usage.generated_tokens == 7
    assert usage.forced_tokens == 5
    assert driver.finished(steps).reason == FinishReason.LENGTH


def test_the_greatest_length_counts_what_is_there(hash_engine: Any) -> None:
    """Tokens that were taken back make room again."""
    driver = hash_engine()
    context, steps = start(driver, max_tokens=3)
    for _ in range(5):
        driver.next(steps)
        driver.next(steps, Splice(backtrack=1), sample=False)
    for _ in range(3):
        outcome = driver.next(steps)

    assert outcome.finish_reason == FinishReason.LENGTH
    assert len(driver.held(context)) == len(PROMPT) + 3


def test_an_end_of_text_can_be_replaced(hash_engine: Any, hash_text: Any) -> None:
    """A splice that drops a stop token goes on; a forced stop token ends it, and nothing comes after."""
    driver = hash_engine()
    (first,) = hash_text(PROMPT, 1)
    context, steps = start(driver, token_ids=(first, 65))
    kept = driver.next(steps, Splice((first,), 1, (60,)))
    ended = driver.next(steps, Splice(token_ids=(64, 65, 66)), sample=False)

    assert kept.finish_reason is None
    assert ended.finish_reason == FinishReason.STOP_TOKEN
    assert driver.held(context) == [*PROMPT, 60, 64, 65]


@pytest.mark.parametrize("strings", [(), ("zz",), ("fox",)])
def test_the_text_is_that_of_the_tokens(tiny_engine: Any, tiny_folder: Any, strings: Any) -> None:
    """Whatever is taken back and added, the text so far is that of the tokens so far, in whole characters."""
    text = ModelTokenizer(tiny_folder)
    driver = tiny_engine()
    _, steps = start(driver, strings=strings)
    parts = ["The quick é日", "本 brown", " f", "ox"]
    shown, held = "", []
    for number, part in enumerate(parts * 3):
        tokens = tuple(text.encode(part))
        back = 0 if part == "ox" else (number * 3) % (len(held) + 1)
        outcome = driver.next(steps, Splice(backtrack=back, token_ids=tokens), sample=False)
        shown = shown[: len(shown) - outcome.text_backtrack] + outcome.text
        held = [*held[: len(held) - back], *outcome.token_ids]
        whole = text.decode(held).rstrip("�")
        if outcome.finish_reason is not None:
            assert outcome.finish_reason == FinishReason.STOP_STRING
            assert whole.startswith(shown + "fox")
            return
        held_back = whole[len(shown) :]
        assert whole.startswith(shown)
        assert held_back == "" or any(string.startswith(held_back) for string in strings), (whole, shown)
    assert strings != ("fox",)


def test_going_back_before_the_generation_takes_back_all_text(tiny_engine: Any, tiny_folder: Any) -> None:
    """Text of the prompt was never shown, so only the generation's own characters are taken back."""
    text = ModelTokenizer(tiny_folder)
    driver = tiny_engine()
    _, steps = start(driver)
    told = driver.next(steps, Splice(token_ids=tuple(text.encode("hello"))), sample=False)
    outcome = driver.next(steps, Splice(backtrack=len(told.token_ids) + 3, token_ids=(70,)), sample=False)

    assert outcome.text_backtrack == len("hello")
    assert driver.next(steps, Splice(backtrack=2), sample=False).text_backtrack == len(outcome.text)


@pytest.mark.parametrize("penalty", ["repetition_penalty", "frequency_penalty", "presence_penalty"])
def test_penalties_follow_what_is_there(tiny_engine: Any, penalty: str) -> None:
    """After splices, the same tokens are penalised as in a generation that came there directly."""
    driver = tiny_engine()
    options = {penalty: 1.9, "num_logprobs": 5}
    _, steps = start(driver, PROMPT, **options)
    for token_id in (60, 61, 60, 62):
        driver.next(steps, Splice(token_ids=(token_id,)), sample=False)
    driver.next(steps, Splice(backtrack=6), sample=False)
    driver.next(steps, Splice(token_ids=(61, 63)), sample=False)
    outcome = driver.next(steps)
    _, direct = start(driver, PROMPT[:8], **options)
    driver.next(direct, Splice(token_ids=(61, 63)), sample=False)

    assert driver.next(direct).logprobs == outcome.logprobs


def test_forks_that_wait_for_dropped_tokens_go_on(hash_engine: Any, hash_text: Any) -> None:
    """A fork keeps what its source takes back."""
    driver = hash_engine(max_batch_tokens=4)
    context, steps = start(driver, range(20, 40))
    fork = driver.fork(context, 20)
    plain = driver.generate(fork, max_tokens=3)
    driver.step(2)
    driver.next(steps, Splice(backtrack=15, token_ids=(60,)), sample=False)
    driver.settle()

    assert driver.tokens(plain) == hash_text(range(20, 40), 3)
    assert driver.next(steps).sampled == hash_text([*range(20, 25), 60], 1)[0]


def test_forced_tokens_are_charged_as_computed_ones(hash_engine: Any) -> None:
    """A program that forces its text one token at a time is charged for each, but less than for sampled ones."""
    costs = []
    for samples in (True, False):
        driver = hash_engine()
        run = driver.open_run()
        context = driver.create(run, PROMPT)
        steps = driver.steps(context)
        for _ in range(10):
            driver.next(steps, Splice((), int(samples), (60,)), sample=samples)
            driver.settle()
        costs.append(driver.core._handler.accounts[run].share.counter)

    assert costs == [pytest.approx(40, abs=0.1), pytest.approx(20, abs=0.1)]
