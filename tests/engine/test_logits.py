"""Penalties and bias, against plain formulas and transformers' own processor."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import RepetitionPenaltyLogitsProcessor

from tartlet_engine.api import Sampling
from tartlet_engine.logits import LogitsProcessor, needs_processor

VOCABULARY_SIZE = 60
TOKEN_IDS = st.lists(st.integers(0, VOCABULARY_SIZE - 1), max_size=200)
LOGITS = np.random.default_rng(0).normal(size=VOCABULARY_SIZE).astype(np.float32)


@given(TOKEN_IDS, TOKEN_IDS, st.sampled_from([1.0, 1.3, 0.7]))
def test_equals_plain_formulas(context: list[int], generated: list[int], repetition: float) -> None:
    """Repetition counts context and generation, presence and frequency only the generation, bias comes last."""
    bias = ((3, 2.5), (4, -100.0), (3, 0.5))
    processor = LogitsProcessor(Sampling(0, 1.0, 0, 1.0, 0.0, repetition, 0.4, -0.2, bias), context)
    for token_id in generated:
        processor.note(token_id)
    seen = torch.tensor([context + generated], dtype=torch.long)
    expected = RepetitionPenaltyLogitsProcessor(repetition)(seen, torch.tensor(LOGITS)[None])[0].numpy()
    for token_id, count in Counter(generated).items():
        expected[token_id] -= 0.4 - 0.2 * count
    expected[3] += 3.0
    expected[4] -= 100.0

    np.testing.assert_allclose(processor.apply(LOGITS), expected, rtol=1e-5, atol=1e-5)


def test_biases_and_boosts_of_one_row_add_up() -> None:
    """Those of single tokens and of masks, on top of the generation's; the generation's own stays as it is."""
    ids = [np.array([0, 2]), np.array([2, 3])]
    masks = [np.packbits(np.isin(np.arange(64), each), bitorder="little").view(np.uint32) for each in ids]
    processor = LogitsProcessor(Sampling(0, logit_bias=((1, 5.0),)), [])
    expected = LOGITS.copy()
    expected[:4] += np.array([1.0, 7.0, 1.0 - 3.0, -3.0], dtype=np.float32)

    biased = processor.biased([(1, 2.0)], [(masks[0], 1.0), (masks[1], -3.0)])

    np.testing.assert_allclose(biased.apply(LOGITS), expected, rtol=1e-6)
    assert processor.apply(LOGITS)[1] == LOGITS[1] + np.float32(5.0)


def test_leaves_its_argument_alone() -> None:
    """Forks share logits: applying a processor does not write to them."""
    before = LOGITS.copy()
    LogitsProcessor(Sampling(0, logit_bias=((0, 5.0),)), []).apply(LOGITS)

    assert np.array_equal(LOGITS, before)


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(0, 0.7, 5, 0.9, 0.1), False),
        (Sampling(0, repetition_penalty=1.1), True),
        (Sampling(0, presence_penalty=-0.1), True),
        (Sampling(0, frequency_penalty=0.1), True),
        (Sampling(0, logit_bias=((0, 0.0),)), True),
    ],
)
def test_is_needed_only_for_penalties_and_bias(sampling: Sampling, expected: bool) -> None:
    """Filters and temperature alone need no processor."""
    assert needs_processor(sampling) is expected
