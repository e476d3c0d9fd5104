"""Stepped generations under masks and constraints: these follow what is really appended."""

from __future__ import annotations

import re
from typing import Any

from tartlet_engine.api import ConstraintKind, ErrorCode, FinishReason, MakeMask, Splice
from tartlet_engine.constraints.vocabulary import words_of
from tartlet_engine.tokenizer import ModelTokenizer

PROMPT = list(range(20, 30))


def constrained(driver: Any, regex: str, **options: Any) -> tuple[int, int]:
    """A context in a run of its own, and a stepped generation on it that follows a regex."""
    run = driver.open_run()
    constraint = driver.compile(run, ConstraintKind.REGEX, regex)
    context = driver.create(run, PROMPT)
    return context, driver.steps(context, constraint_id=constraint, **options)


def test_masks_restrict_one_step(tiny_engine: Any) -> None:
    """A mask and a list of an answer hold together; if nothing is left, or there is no such mask, it is refused."""
    driver = tiny_engine()
    run = driver.open_run()
    driver.do(MakeMask(901, run, words_of((60, 61), driver.info.vocabulary_size).tobytes()))
    steps = driver.steps(driver.create(run, PROMPT))
    masked = {driver.next(steps, Splice((), 1), mask_id=901, temperature=50.0).sampled for _ in range(20)}
    both = driver.next(steps, mask_id=901, allow=(61, 62))
    driver.answer(steps, mask_id=901, allow=(62,))
    driver.answer(steps, mask_id=902)
    free = driver.next(steps)

    assert masked == {60, 61}
    assert both.sampled == 61
    assert [error.code for error in driver.refusals(steps)] == [ErrorCode.INVALID_ARGUMENT, ErrorCode.NOT_FOUND]
    assert free.sampled not in (60, 61)


def test_a_boost_adds_to_all_tokens_of_a_mask(tiny_engine: Any) -> None:
    """It adds to biases of the same tokens, and holds for one step."""
    driver = tiny_engine()
    run = driver.open_run()
    driver.do(MakeMask(901, run, words_of((60, 61, 62), driver.info.vocabulary_size).tobytes()))
    steps = driver.steps(driver.create(run, PROMPT), logit_bias=((60, -900.0),))
    seen = {driver.next(steps, Splice((), 1), boosts=((901, 500.0),), temperature=50.0).sampled for _ in range(20)}
    biased = driver.next(steps, boosts=((901, 500.0),), bias=((61, -900.0),))
    driver.answer(steps, boosts=((902, 1.0),))

    assert seen == {61, 62}
    assert biased.sampled == 62
    assert driver.next(steps).sampled not in (60, 61, 62)
    assert driver.refusals(steps)[0].code == ErrorCode.NOT_FOUND


def test_a_mask_of_the_whole_generation_holds_in_each_step(tiny_engine: Any) -> None:
    """What the generation may sample and what the step may are both kept, in forks as well."""
    driver = tiny_engine()
    run = driver.open_run()
    driver.do(MakeMask(901, run, words_of((60, 61), driver.info.vocabulary_size).tobytes()))
    steps = driver.steps(driver.create(run, PROMPT), mask_id=901)
    driver.next(steps, allow=(61, 62))
    _, child = driver.fork_steps(steps)
    driver.answer(steps, allow=(62,))

    assert [outcome.sampled for outcome in driver.outcomes(steps)] == [61]
    assert driver.next(child).sampled in (60, 61)
    assert driver.refusals(steps)[0].code == ErrorCode.INVALID_ARGUMENT


def test_what_is_sampled_follows_the_constraint(tiny_engine: Any) -> None:
    """Without splices the text matches, and ends as `complete` when nothing may follow."""
    driver = tiny_engine()
    _, steps = constrained(driver, "[0-9]{3}-[a-z]{2}", ignore_eos=True)
    text = ""
    while (outcome := driver.next(steps)).finish_reason is None:
        text += outcome.text

    assert re.fullmatch("[0-9]{3}-[a-z]{2}", text)
    assert (outcome.finish_reason, outcome.token_ids) == (FinishReason.COMPLETE, ())
    assert driver.finished(steps).reason == FinishReason.COMPLETE


def test_the_constraint_goes_back_with_the_text(tiny_engine: Any, tiny_folder: Any) -> None:
    """Splices move the constraint: what was taken back is open again, what was forced counts."""
    text = ModelTokenizer(tiny_folder)
    driver = tiny_engine()
    context, steps = constrained(driver, "(a[0-9]{3}|b[x-z]{3})end", ignore_eos=True)
    driver.next(steps, allow=tuple(text.encode("a")))
    for _ in range(2):
        driver.next(steps)
    back = len(driver.held(context)) - len(PROMPT)
    outcome = driver.next(steps, Splice(backtrack=back, token_ids=tuple(text.encode("b"))), sample=False)
    while outcome.finish_reason is None:
        outcome = driver.next(steps)

    assert re.fullmatch("b[x-z]{3}end", text.decode(driver.held(context)[len(PROMPT) :]))


def test_what_the_constraint_does_not_allow_can_be_taken_back(tiny_engine: Any, tiny_folder: Any) -> None:
    """After a splice that breaks it nothing can be sampled, until the program goes back."""
    text = ModelTokenizer(tiny_folder)
    driver = tiny_engine()
    _, steps = constrained(driver, "[0-9]{4}", ignore_eos=True)
    broken = driver.next(steps, Splice(token_ids=tuple(text.encode("ab"))), sample=False)
    driver.answer(steps)
    driver.settle()
    assert "the constraint allows nothing" in driver.refusals(steps)[0].message
    driver.next(steps, Splice(backtrack=len(broken.token_ids)), sample=False)

    assert driver.next(steps).text.isdigit()


def test_nothing_before_the_constraint_can_be_dropped(tiny_engine: Any) -> None:
    """A backtrack beyond the place where the constraint began is an error of that answer."""
    driver = tiny_engine()
    _, steps = constrained(driver, "[0-9]{8}", ignore_eos=True)
    driver.next(steps)
    driver.answer(steps, Splice(backtrack=2), sample=False)
    driver.answer(steps, Splice((), 3))

    assert [error.code for error in driver.refusals(steps)] == [ErrorCode.INVALID_ARGUMENT] * 2
    assert driver.next(steps, Splice(backtrack=1), sample=False).backtrack == 1


def test_branches_follow_the_constraint_each_on_its_way(tiny_engine: Any, tiny_folder: Any) -> None:
    """A fork has its own place in the constraint, and may go back before the fork."""
    text = ModelTokenizer(tiny_folder)
    driver = tiny_engine()
    context, steps = constrained(driver, "(a[0-9]{3}|b[x-z]{3})end", ignore_eos=True)
    driver.next(steps, allow=tuple(text.encode("a")))
    child_context, child = driver.fork_steps(steps)
    driver.next(child, Splice(backtrack=1, token_ids=tuple(text.encode("b"))), sample=False)
    for branch in (steps, child):
        while driver.next(branch).finish_reason is None:
            pass

    texts = [text.decode(driver.held(each)[len(PROMPT) :]) for each in (context, child_context)]
    assert re.fullmatch("a[0-9]{3}end", texts[0])
    assert re.fullmatch("b[x-z]{3}end", texts[1])


def test_a_step_without_anything_to_sample_under_the_constraint_is_refused(tiny_engine: Any) -> None:
    """Tokens that the constraint does not allow cannot be asked for; the program may ask for others."""
    driver = tiny_engine()
    _, steps = constrained(driver, "[0-9]{4}", ignore_eos=True)
    driver.answer(steps, allow=(300,))
    driver.settle()

    assert [error.code for error in driver.refusals(steps)] == [ErrorCode.INVALID_ARGUMENT]
    assert driver.next(steps).text.isdigit()
