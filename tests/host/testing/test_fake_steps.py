"""One stepped generation of the fake engine: texts, ends, forks."""

from __future__ import annotations

from typing import Any

from tartlet.testing.fake_pages import FakeContext
from tartlet.testing.fake_steps import FakeSteps
from tartlet_engine.api import FinishReason, Generate, Sampling, Splice, StepAnswer, Stepped, Stop

PROMPT = list(b"ask")


def begin(reply: str = "größe", **stop: Any) -> FakeSteps:
    command = Generate(1, 2, Sampling(seed=0), Stop(**stop), 1, stepped=True)
    return FakeSteps(command, FakeContext(2, 3, PROMPT.copy()), reply, 100)


def step(steps: FakeSteps, *splices: Splice, **answer: Any) -> Stepped:
    steps.answer = StepAnswer(splices=splices, **answer)
    return steps.step()


def test_the_text_goes_back_with_the_tokens() -> None:
    """Characters come whole, and what is taken back is told in characters."""
    steps = begin()
    texts = [step(steps).text for _ in range(5)]
    back = step(steps, Splice(backtrack=2, token_ids=(*b"X",)), sample=False)

    assert texts == ["g", "r", "", "ö", ""]
    assert (back.text_backtrack, back.text, back.backtrack) == (1, "\ufffdX", 2)
    assert steps.context.token_ids == [*PROMPT, *b"gr", "ö".encode()[0], *b"X"]


def test_what_is_allowed_comes() -> None:
    """A byte of the reply if it is allowed, else the first token that is; it may be replaced."""
    steps = begin("ab")
    assert step(steps, allow=(97, 98)).sampled == 97
    replaced = step(steps, Splice((99,), 1, (100,)), allow=(99,))
    assert (replaced.sampled, replaced.token_ids) == (99, (100,))


def test_it_ends_as_a_generation_does() -> None:
    """By eos at the end of the reply, by a stop string in forced text, by length."""
    by_eos, by_string, by_length = begin("a"), begin(strings=("stop",)), begin(max_tokens=1)
    step(by_eos)
    assert step(by_eos).finish_reason is FinishReason.EOS
    ended = step(by_string, Splice(token_ids=(*b"one stop two",)), sample=False)
    assert (ended.finish_reason, ended.text) == (FinishReason.STOP_STRING, "one ")
    assert step(by_length).finish_reason is FinishReason.LENGTH


def test_a_fork_goes_on_by_itself() -> None:
    """It has the place in the reply, and may go back before the fork."""
    steps = begin("abc")
    step(steps)
    fork = steps.fork(Generate(9, 8, Sampling(seed=0), stepped=True), FakeContext(8, 3, steps.context.token_ids.copy()))

    assert step(fork).sampled == step(steps).sampled == 98
    assert step(fork, Splice(backtrack=2), sample=False).text_backtrack == 2
    assert steps.context.token_ids == [*PROMPT, *b"ab"]
