"""Programs in C on the real model: they generate what the same programs in Python do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tartlet import sync

pytestmark = [pytest.mark.model, pytest.mark.runner, pytest.mark.slow]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
FORK_TREE = """
from tartlet_sdk import Model, Sampler, inferlet

@inferlet
async def main(branches: int, depth: int) -> list:
    root = Model.default().context()
    root.fill("Once upon a time")
    level = [root]
    for each in range(1, depth + 1):
        level = [context.fork() for context in level for _ in range(branches)]
        samplers = [Sampler.temperature(0.9, seed=1000 * each + k) for k in range(len(level))]
        for context, sampler in zip(level, samplers):
            await context.generate(sampler, max_tokens=6)
    return [context.tokens for context in level]
"""


def test_a_tree_of_forks_has_the_same_tokens(real_host: sync.Host) -> None:
    """Each sampled with a seed of its own."""
    sizes = {"branches": 2, "depth": 2}
    ours = real_host.run(EXAMPLES / "languages" / "c" / "fork_tree", sizes)

    assert len(ours) == 4
    assert len({tuple(each) for each in ours}) > 1
    assert ours == real_host.run(FORK_TREE, sizes)


def test_best_of_n_chooses_the_same(real_host: sync.Host) -> None:
    """All candidates and the choice, from the seed of the run."""
    ours = real_host.run(EXAMPLES / "languages" / "c" / "best_of_n", {"n": 3}, seed=7)
    theirs = real_host.run(EXAMPLES / "best_of_n", {"n": 3}, seed=7)

    assert len(set(ours["candidates"])) == 3
    assert ours["candidates"] == theirs["candidates"]
    assert ours["best"] == theirs["best"]
    assert ours["probabilities"] == pytest.approx(theirs["probabilities"], abs=0.0011)
