"""Distributions: log-probabilities, most likely tokens and entropy, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tartlet_engine.api import ErrorCode
from tartlet_engine.command_error import CommandError
from tartlet_engine.distribution import Distribution


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("size", [3, 1000])
def test_numbers_of_a_row(scale: float, size: int) -> None:
    """Everything equals what float64 gives from the definition."""
    logits = (scale * np.random.default_rng(1).standard_normal(size) + 80).astype(np.float32)
    exact = logits.astype(np.float64) - logits.max()
    logprobs = exact - math.log(np.exp(exact).sum())
    distribution = Distribution(logits)

    assert distribution.logprobs(range(size)) == pytest.approx(logprobs, abs=1e-4)
    assert distribution.entropy() == pytest.approx(-(np.exp(logprobs) * logprobs).sum(), abs=1e-4)
    order = np.argsort(-logits, kind="stable")[:20]
    assert [each.token_id for each in distribution.top(20)] == order.tolist()
    assert [each.logprob for each in distribution.top(20)] == pytest.approx(logprobs[order], abs=1e-4)


def test_impossible_tokens() -> None:
    """A logit of minus infinity is a probability of nothing, and no harm to the entropy."""
    distribution = Distribution(np.array([0.0, -np.inf, 0.0], dtype=np.float32))

    assert distribution.logprob(1) == -math.inf
    assert distribution.entropy() == pytest.approx(math.log(2))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_row_that_is_no_distribution(value: float) -> None:
    """It is refused by name."""
    with pytest.raises(CommandError) as caught:
        Distribution(np.array([0.0, value, 1.0], dtype=np.float32))
    assert caught.value.error.code is ErrorCode.INTERNAL
