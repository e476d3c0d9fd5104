"""The commands of stepped generations: what is refused, and forks inside a step."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_engine.api import AnswerStep, ErrorCode, ForkSteps, Splice, StepAnswer

PROMPT = list(range(20, 30))


def start(driver: Any, prompt: Any = PROMPT, **options: Any) -> tuple[int, int]:
    """A context in a run of its own, and a stepped generation on it."""
    context = driver.create(driver.open_run(), prompt)
    return context, driver.steps(context, **options)


def test_children_share_the_logits_and_sample_under_their_own_masks(hash_engine: Any, hash_text: Any) -> None:
    """Three branches of one step sample at once, each within its own tokens, without a forward pass of their own."""
    driver = hash_engine()
    context, steps = start(driver)
    driver.settle()
    num_computed = driver.runner.num_computed_tokens
    children = [driver.fork_steps(steps) for _ in range(2)]
    branches = [(context, steps), *children]
    for number, (_, branch) in enumerate(branches):
        driver.answer(branch, allow=(60 + number,))
    driver.core.sample_answered()
    driver.events += driver.core.take_events()

    assert driver.runner.num_computed_tokens == num_computed
    assert [driver.outcomes(branch)[0].token_ids for _, branch in branches] == [(60,), (61,), (62,)]
    for number, (held, branch) in enumerate(branches):
        assert driver.held(held) == [*PROMPT, 60 + number]
        assert driver.next(branch).sampled == hash_text([*PROMPT, 60 + number], 1)[0]


def test_a_fork_before_the_logits_are_there_waits_for_them(hash_engine: Any, hash_text: Any) -> None:
    """Forked before the prompt is computed, children share that, too: it is computed once."""
    driver = hash_engine(prefix_cache=False, max_batch_tokens=4)
    _, steps = start(driver)
    child = driver.fork_steps(steps)[1]
    grandchild = driver.fork_steps(child)[1]
    for branch in (steps, child, grandchild):
        driver.answer(branch)
    driver.settle()

    assert driver.runner.num_computed_tokens == len(PROMPT) + 3
    assert all(driver.outcomes(branch)[0].sampled == hash_text(PROMPT, 1)[0] for branch in (steps, child, grandchild))


def test_each_child_starts_with_its_own_text(hash_engine: Any, hash_text: Any) -> None:
    """Branches may force different texts at once; all are exact."""
    driver = hash_engine()
    _, steps = start(driver)
    driver.next(steps)
    branches = [driver.fork_steps(steps) for _ in range(3)]
    for number, (_, branch) in enumerate(branches):
        driver.answer(branch, Splice(backtrack=1, token_ids=(70 + number, 80)), sample=False)
    driver.settle()

    for number, (_, branch) in enumerate(branches):
        assert driver.next(branch).sampled == hash_text([*PROMPT, 70 + number, 80], 1)[0]


def test_a_child_has_its_parents_state(tiny_engine: Any) -> None:
    """Penalties, random numbers, stop conditions and text go on in the child as in the parent; a seed can be new."""
    driver = tiny_engine()
    options = {"temperature": 2.0, "seed": 5, "frequency_penalty": 1.0, "max_tokens": 8, "num_logprobs": 3}
    _, steps = start(driver, **options)
    for _ in range(3):
        driver.next(steps)
    twin, other = driver.fork_steps(steps)[1], driver.fork_steps(steps, seed=6)[1]
    outcomes = {branch: [driver.next(branch) for _ in range(5)] for branch in (steps, twin, other)}

    def told(branch: int) -> list[Any]:
        return [(o.token_ids, o.text, o.logprobs, o.finish_reason) for o in outcomes[branch]]

    assert told(twin) == told(steps)
    assert told(other) != told(steps)
    assert all(driver.finished(branch).reason == "length" for branch in (steps, twin, other))
    assert driver.finished(twin).usage.prompt_tokens == len(PROMPT) + 3
    assert driver.finished(twin).usage.generated_tokens == 5


def test_a_child_can_go_back_before_the_fork(tiny_engine: Any) -> None:
    """Text that the parent has shown can be taken back in the child."""
    driver = tiny_engine()
    _, steps = start(driver)
    shown = "".join(driver.next(steps, Splice(token_ids=(70 + i,)), sample=False).text for i in range(3))
    context, child = driver.fork_steps(steps)
    outcome = driver.next(child, Splice(backtrack=3), sample=False)

    assert outcome.text_backtrack == len(shown)
    assert driver.held(context) == PROMPT


def test_stopping_one_branch_leaves_the_others(hash_engine: Any) -> None:
    """A cancelled parent's children go on, and the pages of those that are freed come back."""
    driver = hash_engine(prefix_cache=False)
    context, steps = start(driver, range(20, 40))
    driver.settle()
    child_context, child = driver.fork_steps(steps)
    driver.cancel(steps)
    driver.free(context)
    driver.next(child)
    driver.settle()
    assert driver.num_held == 6
    driver.free(child_context)
    assert driver.num_held == 0


def test_forking_what_does_not_wait_is_refused(hash_engine: Any) -> None:
    """Not while a step is being carried out, not a plain generation, not one that has ended."""
    driver = hash_engine()
    context, steps = start(driver)
    plain = driver.generate(driver.create(driver.open_run(), PROMPT), max_tokens=2)
    driver.answer(steps)
    failures = [driver.fork_steps(steps)[1], driver.fork_steps(plain)[1], driver.fork_steps(9999)[1]]
    driver.settle()

    codes = [driver.failure(failure).code for failure in failures]
    assert codes == [ErrorCode.UNAVAILABLE, ErrorCode.INVALID_ARGUMENT, ErrorCode.NOT_FOUND]
    assert len(driver.outcomes(steps)) == 1
    assert driver.core.stats().contexts == 2
    driver.do(ForkSteps(steps, context, 12345))
    assert driver.failure(12345).code == ErrorCode.ALREADY_EXISTS


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (StepAnswer(temperature=float("nan")), "temperature"),
        (StepAnswer(temperature=-1.0), "temperature"),
        (StepAnswer(allow=()), "allow"),
        (StepAnswer(allow=(512,)), "allow[0]"),
        (StepAnswer(allow=(1,) * 4097), "allow"),
        (StepAnswer(bias=((3, float("inf")),)), "bias[0]"),
        (StepAnswer(bias=((512, 1.0),)), "bias[0]"),
        (StepAnswer(bias=((3, 1.0),) * 1025), "bias"),
        (StepAnswer(splices=(Splice(),) * 65), "splices"),
        (StepAnswer(splices=(Splice(backtrack=-1),)), "splices[0].backtrack"),
        (StepAnswer(splices=(Splice(), Splice((-1,)))), "splices[1].when_sampled[0]"),
        (StepAnswer(splices=(Splice(token_ids=(512,)),)), "splices[0].token_ids[0]"),
        (StepAnswer(splices=(Splice(token_ids=(1,) * 1001),)), "token_ids of all splices"),
        (StepAnswer(splices=(Splice(token_ids=(1,) * 501),) * 2), "token_ids of all splices"),
        (StepAnswer(splices=(Splice((1,) * 1024),) * 5), "when_sampled of all splices"),
        (StepAnswer(sample=False, splices=(Splice((1,)),)), "splices"),
        (StepAnswer(sample=False, splices=(Splice(), Splice())), "splices"),
    ],
)
def test_bad_answers_are_refused_and_change_nothing(hash_engine: Any, answer: StepAnswer, named: str) -> None:
    """The refusal names the field; the generation waits for another answer."""
    driver = hash_engine()
    context, steps = start(driver)
    driver.do(AnswerStep(steps, answer))

    (error,) = driver.refusals(steps)
    assert error.code == ErrorCode.INVALID_ARGUMENT
    assert error.message.startswith(f"{named} must be")
    assert driver.held(context) == PROMPT
    assert driver.next(steps).sampled is not None


def test_there_must_be_room(hash_engine: Any) -> None:
    """Neither a sampled nor a forced token goes past the context length; going back makes room."""
    driver = hash_engine(context_len=12)
    _, steps = start(driver, range(20, 32))
    driver.answer(steps)
    driver.answer(steps, Splice(token_ids=(60,)), sample=False)
    assert [error.code for error in driver.refusals(steps)] == [ErrorCode.CONTEXT_OVERFLOW] * 2

    assert driver.next(steps, Splice(backtrack=2, token_ids=(60,)), sample=False).finish_reason is None
    assert driver.next(steps).finish_reason == "length"


def test_plain_generations_take_no_answers(hash_engine: Any) -> None:
    """An answer for a generation that was not started stepped is refused, and changes nothing of it."""
    driver = hash_engine()
    plain = driver.generate(driver.create(driver.open_run(), PROMPT), max_tokens=2)
    driver.answer(plain)
    driver.settle()

    assert driver.refusals(plain)[0].code == ErrorCode.INVALID_ARGUMENT
    assert len(driver.tokens(plain)) == 2
