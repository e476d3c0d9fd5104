"""Stepping as Python programs write it."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import InvalidArgument, Mask, Model, Steps, Unavailable


def context() -> Any:
    held = Model.default().context()
    held.fill("abc")
    return held


def test_tokens_and_text_are_kept(run_async: Any) -> None:
    """Each outcome adds to what the steps hold; after the block they are over."""

    async def main() -> Any:
        async with context().steps() as steps:
            outcomes = [await steps.next() for _ in range(3)]
            assert steps.tokens == [outcome.sampled for outcome in outcomes]
            assert steps.text == "".join(outcome.text for outcome in outcomes)
        with pytest.raises(Unavailable, match=r"have not begun, or were stopped"):
            await steps.next()

    run_async(main())


def test_what_makes_steps_is_checked_as_for_generate(stub: Any) -> None:
    """Sampler, stop condition, mask and constraint of a wrong type, with the call's name."""
    for given, message in (
        ({"sampler": 5}, "Context.steps: sampler must be a Sampler"),
        ({"stop": 5}, "Context.steps: stop must be a stop condition"),
        ({"mask": 5}, "Context.steps: mask must be a Mask"),
        ({"logprobs": 21}, "Context.steps: logprobs must be from 0 to 20"),
        ({"regex": 5}, "Context.steps: regex must be a str"),
        ({"tokens": ["x"]}, "Context.steps: tokens must be token ids"),
        ({"regex": "a", "choices": ["b"]}, "Context.steps: regex and choices are given at once"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            context().steps(**given)


def test_forks_know_what_their_parent_knows(run_async: Any) -> None:
    """Text and tokens so far; a child needs no block of its own, but may have one."""

    async def main() -> None:
        async with context().steps(mask=Mask.all()) as steps:
            await steps.next()
            child = steps.fork(seed=1)
            assert (child.text, child.tokens) == (steps.text, steps.tokens)
            async with child:
                await child.next()
            assert len(child.tokens) == 2
            assert len(steps.tokens) == 1

    run_async(main())


def test_errors_name_the_call(run_async: Any) -> None:
    """What is wrong with a text to force or to go back for is told of that call, not of `next`."""

    async def main() -> None:
        async with context().steps() as steps:
            for message in ("Steps.force: tokens must be", "Steps.backtrack: tokens must be"):
                with pytest.raises(InvalidArgument, match=message):
                    await (steps.force([-1]) if "force" in message else steps.backtrack(1, then=[-1]))
        with pytest.raises(Unavailable, match=r"Steps.force: the steps have not begun"):
            await steps.force("x")

    run_async(main())


def test_an_empty_mask_is_not_taken_for_none(run_async: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no tokens, which is for the engine to refuse, not a step without conditions."""
    answers = []

    async def record(steps: Any, answer: Any, name: str) -> None:
        answers.append(answer)

    monkeypatch.setattr(Steps, "_answer", record)

    async def main() -> None:
        async with context().steps() as steps:
            mask = Mask.of([])
            assert not mask
            await steps.next(mask=mask)
            await steps.next()

    run_async(main())
    assert [answer.mask is None for answer in answers] == [False, True]


@pytest.mark.runner
def test_a_step_whose_task_was_cancelled_is_taken_in_later(sandbox: Any) -> None:
    """It is carried out all the same; the next call tells of its own step, and tokens and text have both."""
    assert (
        sandbox.run("""
@inferlet
async def main():
    context = Model.default().context()
    context.fill("abcdefgh")
    async with context.steps() as steps:
        for answer in (steps.next(), steps.backtrack(100)):  # the second will be refused
            task = asyncio.create_task(answer)
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
            try:
                steps.fork()
            except Unavailable as error:
                assert "backtrack(0)" in error.hint
        assert (await steps.next()).text == "b"
        assert (await steps.next()).text == "c"
        assert steps.text == "abc" and context.tokens[8:] == steps.tokens == list(b"abc")
        task = asyncio.create_task(steps.next())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await steps.backtrack(0)
        child = steps.fork()
        return child.text
""")
        == "abcd"
    )


@pytest.mark.runner
def test_steps_belong_to_one_task_at_a_time(sandbox: Any) -> None:
    """Another one is told so, and what the first waits for comes."""
    assert sandbox.run("""
@inferlet
async def main():
    context = Model.default().context()
    context.fill("abc")
    async with context.steps() as steps:
        first, second = await asyncio.gather(steps.next(), steps.next(), return_exceptions=True)
        assert (await steps.next()).text == "b"
        return [first.text, str(second)]
""") == [
        "a",
        "Steps.next: another task waits for a step of these steps\n"
        "Only one task at a time can go on with them: wait for it, or give each a fork.",
    ]


@pytest.mark.runner
def test_in_the_sandbox(sandbox: Any) -> None:
    """Sampling, forcing, going back, forks side by side, waiting for each other: on a host that plays a reply."""
    assert (
        sandbox.run("""
@inferlet
async def main():
    context = Model.default().context()
    context.fill("abcdefgh")
    async with context.steps(max_tokens=30) as steps:
        assert (await steps.next()).text == "a"
        await steps.force("XYZ")
        assert steps.text == "aXYZ" and steps.tokens == list(b"aXYZ")
        outcome = await steps.backtrack(5, then="!")
        assert (outcome.backtrack, steps.text) == (5, "!")
        replaced = await steps.next(splices=[Splice([42], backtrack=1, when_sampled=[98])])
        assert (replaced.sampled, replaced.tokens) == (98, (42,))
        children = [steps.fork() for _ in range(3)]
        async def branch(child, number):
            await child.next(allow=[48 + number])
            await child.wait(asyncio.sleep(0.01))
            await child.next()
            child.stop()
            return child.text
        texts = await asyncio.gather(*(branch(child, number) for number, child in enumerate(children)))
        assert texts == ["!*0d", "!*1d", "!*2d"], texts
        assert bytes(children[0].context.tokens) == b"abcdefg!*0d"
        try:
            await steps.backtrack(100)
        except InvalidArgument as error:
            assert "cannot go back 100 tokens" in str(error)
        context.fork().fill("more")
    context.fill("end")
    return steps.text
""")
        == "!*"
    )


@pytest.mark.runner
def test_a_constraint_is_compiled_first(sandbox: Any) -> None:
    """Steps may follow a constraint from where they begin; one with an error is told when they do."""
    assert (
        sandbox.run("""
@inferlet
async def main():
    context = Model.default().context()
    context.fill("12")
    async with context.steps(regex="[0-9]+", max_tokens=1) as steps:
        outcome = await steps.next()
        assert outcome.finish_reason == steps.finish_reason == "length"
        assert outcome.usage.generated_tokens == 1
    try:
        async with context.steps(regex="("):
            pass
    except InvalidArgument as error:
        return str(error)[:30]
""")
        is not None
    )
