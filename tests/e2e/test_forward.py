"""Forward passes on the small real model."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet import sync

pytestmark = [pytest.mark.model, pytest.mark.runner, pytest.mark.slow]

HEAD = "import asyncio\nfrom tartlet_sdk import *\n@inferlet\nasync def main(value=None):\n"
SETUP = """
    model = Model.default()
    context = model.context()
    context.user("Tell me about the colours of the sea.")
    context.cue()
    tokens = [model.tokenize(text)[0] for text in ("The", " sea", " ocean", "Sea", " colour", " is", " water", " deep")]
    parents = [-1, 0, 0, -1, 1, 4, 3, 6]
    def path(row):
        return [] if row < 0 else [*path(parents[row]), row]
"""


def run(real_host: sync.Host, body: str) -> Any:
    return real_host.run(HEAD + SETUP + body)


def test_branches_say_what_forks_say(real_host: sync.Host) -> None:
    """Each row's likeliest token and its probability are those of a fork with its path, and so is what follows."""
    found, forked, committed, fresh = run(
        real_host,
        """
    ask = [Ask(row, top=1) for row in range(-1, 8)]
    found = await context.forward(tokens, parents=parents, ask=ask)
    forked = []
    for row in range(-1, 8):
        fork = context.fork()
        fork.fill_tokens([tokens[each] for each in path(row)])
        forked.append((await fork.next_distribution(top=1)).top[0])
    found.commit(path(5))
    fresh = model.context()
    fresh.fill_tokens(context.tokens)
    drafts = [await each.generate(max_tokens=24) for each in (context, fresh)]
    return [
        [[row.top[0].token, row.top[0].logprob] for row in found.rows],
        [[each.token, each.logprob] for each in forked],
        *(draft.tokens for draft in drafts),
    ]
    """,
    )

    assert [token for token, _ in found] == [token for token, _ in forked]
    assert [value for _, value in found] == pytest.approx([value for _, value in forked], abs=0.05)
    assert committed == fresh


def test_scores_are_those_of_a_line(real_host: sync.Host) -> None:
    """Texts scored as branches have the log-probabilities of each by itself; long texts take several steps."""
    scores, sums, num_tokens, num_held = run(
        real_host,
        """
    texts = ["Blue", "Blue and green", "Blue and grey, like the sky", "Green"]
    scores = await context.score(texts)
    sums = [sum(each.logprob for each in await context.logprobs(text)) for text in texts]
    long = await context.logprobs("The sea is deep and blue. " * 200)
    return scores, sums, len(long), len(context)
    """,
    )

    assert scores == pytest.approx(sums, abs=0.2)
    assert scores[0] > scores[1] > scores[2]
    assert num_tokens > 1000
    assert num_held < 60


def test_a_pass_leaves_nothing_behind(real_host: sync.Host) -> None:
    """After discarding, a generation writes what it would have written, and the engine's pages add up."""
    before, after = run(
        real_host,
        """
    before = (await context.fork().generate(max_tokens=16)).tokens
    with await context.forward(tokens, parents=parents, logprobs=True):
        pass
    return before, (await context.generate(max_tokens=16)).tokens
    """,
    )

    assert before == after
