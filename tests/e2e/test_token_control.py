"""What programs do token by token, on the real model: behaviours that need no particular wording, and abuse."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tartlet
from tartlet import sync

pytestmark = [pytest.mark.model, pytest.mark.runner, pytest.mark.slow]

IMPORTS = "import asyncio\nfrom tartlet_sdk import *\n@inferlet\nasync def main(seed: int = 0):\n"
BEGIN = """
    model = Model.default()
    context = model.context()
    context.user("Name three towns by the sea.")
"""


def run(host: sync.Host, body: str, **options: Any) -> Any:
    """What a program gives that begins with a question to the model."""
    return host.run(IMPORTS + BEGIN + body, **options)


def test_fixed_text_and_then_a_regex(real_host: sync.Host) -> None:
    """The output is the fixed text and a match, which is what the constraint's tokens say."""
    text, value = run(
        real_host,
        """
    async with context.steps(max_tokens=4) as steps:
        await steps.force("The number is ")
        fixed = steps.text
    draft = await context.generate(regex="[1-9][0-9]{2}")
    return [fixed + draft.text, draft.value]
""",
    )

    assert re.fullmatch("The number is [1-9][0-9]{2}", text)
    assert text.endswith(value)


def test_fixed_and_generated_text_is_taken_back(real_host: sync.Host) -> None:
    """Both had their turn; the sequence has only what came instead, and goes on as a fresh one does."""
    outcome = run(
        real_host,
        """
    context.cue()
    begin = len(context)
    async with context.steps() as steps:
        await steps.force("In French that is")
        for _ in range(5):
            await steps.next()
        first = steps.text
        await steps.backtrack(len(steps.tokens), then="In German that is")
        tokens = [(await steps.next()).sampled for _ in range(5)]
        second = steps.text
    fresh = model.context()
    fresh.fill_tokens(context.tokens[:-5])
    again = await fresh.generate(Sampler.greedy(), max_tokens=5)
    return [first, second, tokens == list(again.tokens), model.detokenize(context.tokens[begin:])]
""",
    )
    first, second, is_as_fresh, held = outcome

    assert first.startswith("In French that is")
    assert second.startswith("In German that is")
    assert "French" not in second
    assert is_as_fresh
    assert held == second


def test_choices_that_come_of_earlier_output(real_host: sync.Host) -> None:
    """A set that the program makes of what the model has written holds for what it writes next."""
    words, chosen = run(
        real_host,
        """
    text = (await context.generate(regex="[A-Z][a-z]{2,6}, [A-Z][a-z]{2,6}")).text
    context.user("Which of them?")
    words = text.split(", ")
    return [words, (await context.generate(choices=words)).value]
""",
    )

    assert chosen in words


def test_branches_that_all_wait_are_a_deadlock(real_host: sync.Host) -> None:
    """They are told at once, by the names that they wait for, and go on."""
    message, num_tokens = run(
        real_host,
        """
    async with context.steps() as steps:
        branches = [steps.fork() for _ in range(3)]
        waits = (branch.wait(variables.wait(f"v{number}")) for number, branch in enumerate(branches))
        errors = await asyncio.gather(*waits, return_exceptions=True)
        assert all(isinstance(error, Deadlock) for error in errors), errors
        await asyncio.gather(*(branch.next() for branch in branches))
        return [str(errors[0]), sum(len(branch.tokens) for branch in branches)]
""",
    )

    assert "'v0'" in message
    assert num_tokens == 3


def test_branches_burn_the_runs_budget(real_host: sync.Host) -> None:
    """Ten of them sample until the run has had its tokens, which ends it by that name."""
    with pytest.raises(tartlet.LimitExceededError) as caught:
        run(
            real_host,
            """
    async with context.steps(stop=ignore_eos()) as steps:
        branches = [steps.fork() for _ in range(10)]
        while True:
            await asyncio.gather(*(branch.next() for branch in branches))
""",
            limits=tartlet.Limits(max_tokens=60),
        )

    assert caught.value.code == "token_budget"


def test_an_empty_context_is_told(real_host: sync.Host) -> None:
    """Nothing stalls on zero tokens."""
    messages = run(
        real_host,
        """
    messages = []
    empty = [model.context() for _ in range(4)]
    calls = empty[0].steps().__aenter__(), empty[1].score(["a"]), empty[2].verify([1]), empty[3].forward([1])
    for call in calls:
        try:
            await call
        except InvalidArgument as error:
            messages.append(error.message)
    return messages
""",
    )

    assert messages == ["the context is empty"] * 4


MIX = """
    import random
    choose = random.Random(seed)
    async def step_on():
        async with context.fork().steps(Sampler.temperature(1.0), regex=choose.choice([None, "[a-z ]{1,40}"])) as steps:
            while steps.finish_reason is None:
                kind = choose.random()
                try:
                    if kind < 0.2:
                        await steps.force("xyz")
                    elif kind < 0.4:
                        await steps.backtrack(choose.randint(0, 3))
                    elif kind < 0.5:
                        child = steps.fork()
                        await asyncio.gather(child.next(), steps.next())
                        child.stop()
                    elif kind < 0.6:
                        await asyncio.wait_for(steps.next(), 0.001)
                    else:
                        await steps.next(splices=[Splice([5, 6], backtrack=1)] if kind > 0.9 else ())
                except (TartletError, TimeoutError):
                    pass
    async def ask():
        mine = context.fork()
        await mine.score([" a", " b c", " b d"])
        await mine.verify(model.tokenize(" a b c"))
        matcher = await Matcher.begin(Constraint.regex("[a-z ]+"))
        await matcher.advance(model.tokenize("abc"))
        await (await matcher.fork()).rollback(1)
        await mine.generate(regex="[a-z ]{3,9}", mask=matcher.mask, speculation=Speculation(expected="a b c"))
    while True:
        await asyncio.gather(step_on(), step_on(), ask(), ask(), return_exceptions=True)
"""


def test_runs_that_are_cancelled_in_any_state(real_host: sync.Host) -> None:
    """Whatever they were doing, a neighbour's tokens are the same, and nothing is left of them."""
    neighbour = IMPORTS + BEGIN + "    return list((await context.generate(max_tokens=12)).tokens)\n"
    expected = real_host.run(neighbour)
    for number in range(6):
        runs = [real_host.start(IMPORTS + BEGIN + MIX, {"seed": 10 * number + k}) for k in range(2)]
        assert real_host.run(neighbour) == expected
        for started in runs:
            started.cancel()
            with pytest.raises(tartlet.RunCancelledError):
                started.result()
