"""Drafts from the contract's records."""

from __future__ import annotations

from typing import Any

from tartlet_sdk import Chunk, TokenLogprob, TokenLogprobs, Usage


def test_log_probabilities_and_usage_are_taken_over(stub: Any) -> None:
    """Every number arrives under its name."""
    one = stub.generation.TokenLogProbability
    position = stub.generation.PositionLogProbabilities(one(5, -0.5), [one(5, -0.5), one(6, -2.0)])
    usage = stub.generation.Usage(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)

    assert TokenLogprobs.of(position) == TokenLogprobs(
        TokenLogprob(5, -0.5), (TokenLogprob(5, -0.5), TokenLogprob(6, -2.0))
    )
    assert Usage.of(usage) == Usage(
        prompt_tokens=1,
        cached_tokens=2,
        generated_tokens=3,
        forced_tokens=4,
        draft_tokens=5,
        accepted_tokens=6,
        pages=7,
        shared_pages=8,
        first_token_ns=9,
        total_ns=10,
    )


def test_a_chunk_reads_as_its_text() -> None:
    """`print(chunk)` prints what was generated."""
    assert f"{Chunk('ab', (1,))}" == "ab"
