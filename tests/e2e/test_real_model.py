"""Programs on the small real model: what only shows when all parts are together."""

from __future__ import annotations

from typing import Any

import pytest

import tartlet
from tartlet import sync

pytestmark = [pytest.mark.model, pytest.mark.runner, pytest.mark.slow]

HEAD = "import asyncio\nfrom tartlet_sdk import *\n@inferlet\nasync def main(value=None):\n"
PROMPT = "Once upon a time, in a small village by the sea, there lived an old fisherman who"
TOKENS = f"""
    context = Model.default().context()
    context.fill({PROMPT!r})
    return (await context.generate(Sampler.top_p(1.0, 0.9), max_tokens=16)).tokens
"""


def test_a_seed_gives_the_same_tokens_alone_and_in_a_crowd(real_host: sync.Host) -> None:
    """A seeded run gives the same tokens whatever runs beside it, and another seed gives others."""
    program = real_host.load(HEAD + TOKENS)
    alone = real_host.run(program, seed=5)

    crowd = [real_host.start(program, seed=seed) for seed in (5, 6, 7, 8)]
    results = [run.result() for run in crowd]

    assert results[0] == alone
    assert len({tuple(result) for result in results}) > 1


def test_a_fork_continues_like_a_fresh_context(real_host: sync.Host) -> None:
    """Greedy continuations of fork, parent and a fresh context with the same tokens are equal; the prompt is shared."""
    fork, parent, fresh, cached, prompt = real_host.run(
        HEAD
        + """
    model = Model.default()
    parent = model.context()
    parent.fill(value)
    fork = parent.fork()
    first = await fork.generate(max_tokens=12)
    second = await parent.generate(max_tokens=12)
    fresh = model.context()
    fresh.fill_tokens(parent.tokens[:first.usage.prompt_tokens])
    third = await fresh.generate(max_tokens=12)
    return first.tokens, second.tokens, third.tokens, second.usage.cached_tokens, second.usage.prompt_tokens
""",
        {"value": PROMPT},
    )

    assert fork == parent == fresh
    assert cached == prompt


def test_steps_are_as_exact_as_a_fresh_context(real_host: sync.Host) -> None:
    """Plain steps give the tokens of a generation; after splices, forks and going back, those of a fresh context."""
    plain, stepped, forked, fresh, forced, whole = real_host.run(
        HEAD
        + """
    model = Model.default()
    context = model.context()
    context.fill(value)
    plain = await context.fork().generate(max_tokens=12)
    async with context.steps(max_tokens=64) as steps:
        stepped = [(await steps.next()).sampled for _ in range(12)]
        await steps.backtrack(5, then=" sold")
        await steps.force(" his nets and")
        child = steps.fork()
        await child.backtrack(2)
        forked = [(await child.next()).sampled for _ in range(6)]
        child_tokens = child.context.tokens
        for _ in range(6):
            await steps.next()
    fresh = model.context()
    fresh.fill_tokens(child_tokens[:-6])
    draft = await fresh.generate(max_tokens=6)
    one, many = model.context(), model.context()
    for each in (one, many):
        each.fill(value)
    words = model.tokenize(" who sold his nets")
    async with one.steps() as by_one, many.steps() as at_once:
        for token in words:
            await by_one.next(splices=[Splice([token], backtrack=1)])
        await at_once.force(words)
        forced = [[(await each.next()).sampled for _ in range(6)] for each in (by_one, at_once)]
    return plain.tokens, stepped, forked, draft.tokens, *forced
""",
        {"value": PROMPT},
    )

    assert list(plain) == stepped
    assert list(fresh) == forked
    assert forced == whole


def test_the_judge_sees_what_was_streamed(real_host: sync.Host) -> None:
    """Streamed chunks make up the text of the same generation awaited whole."""
    streamed, whole = real_host.run(
        HEAD
        + """
    parent = Model.default().context()
    parent.user("Name three colours, and use an emoji.")
    fork = parent.fork()
    whole = await parent.generate(max_tokens=24)
    streamed = "".join([chunk.text async for chunk in fork.generate(max_tokens=24)])
    return streamed, whole.text
"""
    )

    assert streamed == whole


@pytest.mark.parametrize(
    ("limits", "code"),
    [(tartlet.Limits(max_tokens=5), "token_budget"), (tartlet.Limits(max_kv_pages=2), "kv_limit")],
)
def test_limits_of_the_engine(real_host: sync.Host, limits: tartlet.Limits, code: str) -> None:
    """Tokens and pages are limited by the engine, and a breach ends the run by its name."""
    with pytest.raises(tartlet.LimitExceededError) as caught:
        real_host.run(HEAD + TOKENS, limits=limits)

    assert caught.value.code == code


def test_cancelling_beside_a_neighbour(real_host: sync.Host) -> None:
    """A run that is cancelled in the middle of its generation does not change what its neighbour gets."""
    program = real_host.load(HEAD + TOKENS)
    expected = real_host.run(program, seed=9)
    endless = real_host.load(
        HEAD
        + """
    context = Model.default().context()
    context.fill("Hello")
    async for chunk in context.generate(max_tokens=500):
        print(chunk.text, end="", flush=True)
"""
    )

    doomed: Any = real_host.start(endless)
    next(doomed)
    neighbour = real_host.start(program, seed=9)
    doomed.cancel()

    assert neighbour.result() == expected
    with pytest.raises(tartlet.RunCancelledError):
        doomed.result()


def test_a_saved_context_goes_on_in_another_run(real_host: sync.Host) -> None:
    """Opened by a later run, a chat goes on with the same tokens, and nothing of it is computed again."""
    saving = """
    context = Model.default().context()
    context.system("You are brief.")
    context.user("Name a river.")
    await context.generate(max_tokens=8)
    await context.save("tests/a-river", ttl=600, overwrite=True)
    context.user("Name another.")
    return (await context.generate(max_tokens=8)).tokens
"""
    opening = """
    context = await Context.open("tests/a-river")
    length = len(context)
    Context.delete("tests/a-river")
    context.user("Name another.")
    draft = await context.generate(max_tokens=8)
    return draft.tokens, draft.usage.cached_tokens - length
"""
    expected = real_host.run(HEAD + saving)
    tokens, num_more = real_host.run(HEAD + opening)

    assert tokens == expected
    assert num_more >= 0
