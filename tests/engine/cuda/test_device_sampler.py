"""Sampling on the device against the sampler on the CPU: the same rules and the same random numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from tartlet_engine.api import EngineError, Sampling
from tartlet_engine.cuda.device_sampler import launch_sampling
from tartlet_engine.logits import LogitsProcessor, needs_processor
from tartlet_engine.sampler import Sampled, SamplingRow, sample


def random_logits(num_rows: int, vocabulary_size: int, spread: float = 3.0, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_rows, vocabulary_size, generator=generator) * spread


def device_ids(logits: torch.Tensor, rows: list[SamplingRow], device: torch.device) -> list[int]:
    results = launch_sampling(logits.to(device), rows).wait()
    assert all(isinstance(result, Sampled) for result in results)
    return [result.token_id for result in results if isinstance(result, Sampled)]


def host_ids(logits: torch.Tensor, rows: list[SamplingRow]) -> list[int]:
    results = sample(logits, rows)
    return [result.token_id for result in results if isinstance(result, Sampled)]


SAMPLINGS = st.builds(
    Sampling,
    seed=st.integers(0, 2**64 - 1),
    temperature=st.sampled_from([0.0, 0.1, 0.7, 1.0, 3.0]),
    top_k=st.sampled_from([0, 0, 1, 2, 7, 50, 5000]),
    top_p=st.sampled_from([1.0, 1.0, 0.999, 0.95, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.0, 0.001, 0.1, 0.9, 1.0]),
    repetition_penalty=st.sampled_from([1.0, 1.0, 1.2]),
    presence_penalty=st.sampled_from([0.0, 0.5]),
    frequency_penalty=st.sampled_from([0.0, -0.25]),
    logit_bias=st.sampled_from([(), ((1, 3.0), (0, -2.0), (1, 0.5))]),
)


@given(
    st.lists(SAMPLINGS, min_size=1, max_size=4),
    st.sampled_from([2, 255, 1024, 1025, 3000]),
    st.sampled_from([0.01, 1.0, 4.0, 30.0]),
    st.integers(0, 99),
)
@settings(max_examples=25)
def test_equals_the_sampler_on_the_cpu(
    device: torch.device, samplings: list[Sampling], vocabulary_size: int, spread: float, index: int
) -> None:
    """Every mix of temperature, filters, penalties and bias gives each row the token that the CPU gives it.

    A number within rounding of a border between two tokens may choose the other of them: the next one that is kept.
    """
    logits = random_logits(len(samplings), vocabulary_size, spread, seed=index)
    rows = []
    for sampling in samplings:
        processor = None
        if needs_processor(sampling):
            processor = LogitsProcessor(sampling, [0, 1, 1, vocabulary_size - 1])
            processor.note(1)
        rows.append(SamplingRow(sampling, index, processor))
    before = logits.clone()
    ours, theirs = device_ids(logits, rows, device), host_ids(logits, rows)

    assert torch.equal(logits, before)
    for row_logits, row, token_id, expected in zip(logits, rows, ours, theirs, strict=True):
        assert token_id == expected or token_id in near_ids(row_logits, row)


def near_ids(logits: torch.Tensor, row: SamplingRow) -> set[int]:
    """The tokens that the CPU gives if logits are rounded a little otherwise."""
    wiggles = [random_logits(1, len(logits), 3e-6, seed) for seed in range(20)]
    return {host_ids(logits[None] + wiggle, [row])[0] for wiggle in wiggles}


def test_seeds_give_the_same_tokens_as_on_the_cpu(device: torch.device) -> None:
    """Over many indices of a seed, at a greater vocabulary, all tokens are those of the CPU."""
    logits = random_logits(12, 3000)
    rows = [SamplingRow(Sampling(5, 0.8, top_p=0.95, top_k=200 * (i % 2)), i) for i in range(12)]

    assert device_ids(logits, rows, device) == host_ids(logits, rows)


def test_a_row_does_not_depend_on_the_batch(device: torch.device) -> None:
    """Each row gives alone what it gives in a crowd."""
    logits = random_logits(6, 2000)
    rows = [SamplingRow(Sampling(i, 0.5 * (i % 3), top_p=0.9, top_k=100 * (i % 2)), i) for i in range(6)]

    alone = [device_ids(logits[i : i + 1], [rows[i]], device)[0] for i in range(6)]
    assert device_ids(logits, rows, device) == alone


def test_greedy_takes_the_first_of_equal_ones(device: torch.device) -> None:
    """Temperature 0 takes the greatest logit, the first of equal ones, also in blocks of their own."""
    logits = random_logits(3, 3000)
    logits[0, 17] = logits[0, 2500] = 99.0
    logits[1] = -5.0
    rows = [SamplingRow(Sampling(i, 0.0, top_k=3, top_p=0.1), i) for i in range(3)]

    assert device_ids(logits, rows, device) == [17, 0, int(logits[2].argmax())]


@pytest.mark.parametrize("temperature", [1e-30, 1e-38, 1e-45])
def test_a_temperature_near_0_takes_the_greatest(device: torch.device, temperature: float) -> None:
    """Also one that has no inverse in float32, or that the device takes for 0."""
    logits = random_logits(3, 1500)
    rows = [SamplingRow(Sampling(i, temperature, top_p=1 - 0.1 * i), i) for i in range(3)]

    assert device_ids(logits, rows, device) == logits.argmax(-1).tolist()


def test_masked_tokens_never_come(device: torch.device) -> None:
    """A logit of minus infinity has no probability, even if all but one are masked and the temperature is high."""
    logits = torch.full((4, 1500), -math.inf)
    logits[:, 1400] = -5.0
    samplings = [Sampling(0, 100.0), Sampling(0, 2.0, top_k=10), Sampling(0, 1.0, top_p=0.99), Sampling(0, 0.0)]

    assert device_ids(logits, [SamplingRow(sampling, 3) for sampling in samplings], device) == [1400] * 4


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_of_nonsense_fails_alone(bad: float, temperature: float, device: torch.device) -> None:
    """NaN, an infinity or nothing finite is the error that the CPU gives; its neighbours get their tokens."""
    logits = random_logits(4, 1100)
    logits[1, 1050] = bad
    logits[2] = -math.inf
    rows = [SamplingRow(Sampling(0, temperature), 0) for _ in range(4)]
    ours, theirs = launch_sampling(logits.to(device), rows).wait(), sample(logits, rows)

    assert [isinstance(result, Sampled) for result in ours] == [True, False, False, True]
    assert [result for result in ours if isinstance(result, EngineError)] == [
        result for result in theirs if isinstance(result, EngineError)
    ]


def test_reports_log_probabilities(device: torch.device) -> None:
    """Rows that ask get the same report as on the CPU, after penalties; the others none."""
    logits = random_logits(4, 600)
    biased = Sampling(3, 2.0, logit_bias=((7, 20.0), (8, 19.0)))
    rows = [
        SamplingRow(biased, 0, LogitsProcessor(biased, []), num_logprobs=5),
        SamplingRow(Sampling(1), 0),
        SamplingRow(Sampling(2), 0, num_logprobs=0),
        SamplingRow(Sampling(2), 1, num_logprobs=2),
    ]
    for ours, theirs in zip(launch_sampling(logits.to(device), rows).wait(), sample(logits, rows), strict=True):
        assert isinstance(ours, Sampled)
        assert isinstance(theirs, Sampled)
        if theirs.logprobs is None:
            assert ours.logprobs is None
            continue
        assert ours.logprobs is not None
        assert ours.logprobs.chosen.token_id == theirs.logprobs.chosen.token_id == ours.token_id
        assert ours.logprobs.chosen.logprob == pytest.approx(theirs.logprobs.chosen.logprob, abs=1e-4)
        assert [item.token_id for item in ours.logprobs.top] == [item.token_id for item in theirs.logprobs.top]
        assert [item.logprob for item in ours.logprobs.top] == pytest.approx(
            [item.logprob for item in theirs.logprobs.top], abs=1e-4
        )


def test_masks_are_those_of_the_sampler_on_the_cpu(device: torch.device) -> None:
    """Rows with and without a mask, in one batch, after penalties and bias: tokens and reports are the CPU's."""
    logits = random_logits(6, 1030)
    rows = []
    for number in range(6):
        sampling = Sampling(number, temperature=float(number % 3), logit_bias=((7, 3.0),))
        mask = np.random.default_rng(number).integers(0, 2**32, 33, dtype=np.uint32) if number % 2 else None
        if mask is not None:
            mask[2:] = 0
        rows.append(SamplingRow(sampling, 0, LogitsProcessor(sampling, []), 20 if number < 4 else None, mask))
    expected, results = sample(logits, rows), launch_sampling(logits.to(device), rows).wait()

    assert device_ids(logits, rows, device) == host_ids(logits, rows)
    assert all(host_ids(logits, rows)[number] < 64 for number in (1, 3, 5))
    for one, other in zip(expected[:4], results[:4], strict=True):
        assert isinstance(one, Sampled) and isinstance(other, Sampled)  # noqa: PT018
        assert one.logprobs is not None and other.logprobs is not None  # noqa: PT018
        assert [each.token_id for each in one.logprobs.top] == [each.token_id for each in other.logprobs.top]


def test_only_allowed_tokens_are_reported(device: torch.device) -> None:
    """A mask of two tokens leaves two to report, however many were asked for."""
    mask = np.array([0b1010, 0, 0, 0], dtype=np.uint32)
    (result,) = launch_sampling(random_logits(1, 100).to(device), [SamplingRow(Sampling(0), 0, None, 20, mask)]).wait()

    assert isinstance(result, Sampled)
    assert result.logprobs is not None
    assert sorted(each.token_id for each in result.logprobs.top) == [1, 3]
