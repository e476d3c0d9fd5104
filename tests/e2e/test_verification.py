"""Drafts of a program's own on the small real model: they give what a generation gives."""

from __future__ import annotations

import pytest

from tartlet import sync

pytestmark = [pytest.mark.model, pytest.mark.runner, pytest.mark.slow]

PROGRAM = """
from tartlet_sdk import *

@inferlet
async def main(temperature: float = 0.0):
    sampler = Sampler.temperature(temperature, seed=5)
    context = Model.default().context()
    context.user("Count from one to ten in words.")
    plain = (await context.fork().generate(sampler, stop=ignore_eos(), max_tokens=40)).tokens
    guess = [7 if index % 9 == 8 else token for index, token in enumerate(plain)]
    fork, tokens, passes = context.fork(), [], 0
    while len(tokens) < 40:
        tokens += await fork.verify(guess[len(tokens) : len(tokens) + 8], sampler, sample_index=len(tokens))
        passes += 1
    return [tokens[:40] == list(plain), passes, fork.tokens[-len(tokens):] == tokens]
"""


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_verified_drafts_are_the_generation(real_host: sync.Host, temperature: float) -> None:
    """Drafts that are wrong now and then give the same tokens, greedy and sampled, in a fraction of the passes."""
    is_same, passes, is_appended = real_host.run(PROGRAM, {"temperature": temperature})

    assert is_same
    assert is_appended
    assert passes <= 10
