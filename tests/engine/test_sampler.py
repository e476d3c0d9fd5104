"""The sampler against plain references and transformers' own logits warpers."""

from __future__ import annotations

import math
from collections import Counter

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from tartlet_engine.api import EngineError, ErrorCode, Sampling
from tartlet_engine.logits import LogitsProcessor
from tartlet_engine.sampler import Sampled, SamplingRow, launch_sampling, sample, uniform


def random_logits(num_rows: int, vocabulary_size: int, spread: float = 3.0, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_rows, vocabulary_size, generator=generator) * spread


def sample_ids(logits: torch.Tensor, rows: list[SamplingRow]) -> list[int]:
    results = sample(logits, rows)
    assert all(isinstance(result, Sampled) for result in results)
    return [result.token_id for result in results if isinstance(result, Sampled)]


def warped_probabilities(logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """The distribution by transformers' warpers, in our order; in float64, so that nothing is near a border."""
    warpers = LogitsProcessorList([TemperatureLogitsWarper(sampling.temperature)])
    if sampling.top_k > 0:
        warpers.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1:
        warpers.append(TopPLogitsWarper(sampling.top_p))
    if sampling.min_p > 0:
        warpers.append(MinPLogitsWarper(sampling.min_p))
    return warpers(torch.zeros(1, 1, dtype=torch.long), logits[None].double()).softmax(-1)[0]


def reference_ids(logits: torch.Tensor, sampling: Sampling, index: int) -> set[int]:
    """The token at which the running sum of the probabilities, in the order of the vocabulary, passes the number.

    Several, if rounding in float32 may decide between them.
    """
    ids = set()
    for top_p in {min(1.0, sampling.top_p * (1 + rounding)) for rounding in (-1e-5, 0.0, 1e-5)}:
        running = warped_probabilities(logits, msgspec.structs.replace(sampling, top_p=top_p)).cumsum(-1)
        for rounding in (-1e-5, 0.0, 1e-5):
            number = min(max(uniform(sampling.seed, index) + rounding, 0.0), 1 - 1e-12)
            ids.add(int(torch.searchsorted(running, number, right=True)))
    return ids


SAMPLINGS = st.builds(
    Sampling,
    seed=st.integers(0, 2**64 - 1),
    temperature=st.floats(0.1, 3.0),
    top_k=st.sampled_from([0, 0, 1, 2, 7, 50, 5000]),
    top_p=st.sampled_from([1.0, 1.0, 0.999, 0.95, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.0, 0.001, 0.1, 0.9, 1.0]),
)


@given(
    SAMPLINGS, st.sampled_from([1, 2, 255, 256, 257, 3000]), st.sampled_from([0.01, 1.0, 4.0, 30.0]), st.integers(0, 99)
)
def test_equals_the_reference(sampling: Sampling, vocabulary_size: int, spread: float, index: int) -> None:
    """Every combination of filters gives the token that transformers' warpers and a plain running sum give."""
    logits = random_logits(1, vocabulary_size, spread, seed=index)
    weights = ((logits - logits.max()) / sampling.temperature).exp()
    # Of equal weights at the border of top-p we keep all, transformers some: not a matter of rounding.
    weights = weights[weights > 0]
    assume(sampling.top_p == 1 or len(weights.unique()) == len(weights))

    assert sample_ids(logits, [SamplingRow(sampling, index)])[0] in reference_ids(logits[0], sampling, index)


def test_equals_the_reference_at_full_size() -> None:
    """The same at the vocabulary of a real model."""
    logits = random_logits(4, 49_152)
    for sampling in (Sampling(1), Sampling(2, 0.7, top_p=0.95), Sampling(3, top_k=40), Sampling(4, 1.5, min_p=0.02)):
        for index, token_id in enumerate(sample_ids(logits, [SamplingRow(sampling, index) for index in range(4)])):
            assert token_id in reference_ids(logits[index], sampling, index)


def test_order_of_filters() -> None:
    """Top-p works on what top-k left, and min-p on what both left, after temperature."""
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    # Of the first two, 4/7 and 3/7, the first has less than 0.6: both stay. On all four, three would stay.
    kept = {sample_ids(logits, [SamplingRow(Sampling(7, top_k=2, top_p=0.6), i)])[0] for i in range(50)}
    alone = {sample_ids(logits, [SamplingRow(Sampling(7, top_k=2, top_p=0.5), i)])[0] for i in range(50)}

    assert kept == {0, 1}
    assert alone == {0}


def test_greedy_ignores_everything_else() -> None:
    """Temperature 0 takes the greatest logit, the first of equal ones, whatever the filters say."""
    logits = random_logits(8, 1000)
    logits[3, 17] = logits[3, 400] = 99.0
    rows = [SamplingRow(Sampling(i, 0.0, top_k=3, top_p=0.1, min_p=0.9), i) for i in range(8)]

    assert sample_ids(logits, rows) == logits.argmax(-1).tolist()
    assert sample_ids(logits, rows)[3] == 17


def test_a_row_does_not_depend_on_the_batch() -> None:
    """Each row gives alone what it gives in a crowd, in any order, and the logits are not written to."""
    logits = random_logits(16, 5000)
    before = logits.clone()
    rows = [SamplingRow(Sampling(i % 3, 0.5 * (i % 4), top_p=0.9, top_k=100 * (i % 2)), i) for i in range(16)]
    together = sample_ids(logits, rows)

    assert together == [sample_ids(logits[i : i + 1], [rows[i]])[0] for i in range(16)]
    assert together == sample_ids(logits.flip(0), rows[::-1])[::-1]
    assert torch.equal(logits, before)


def test_rounding_moves_no_sample() -> None:
    """Logits that differ by rounding, which may swap nearly equal ones, give the same tokens."""
    logits = random_logits(200, 2000, spread=1e-3)  # many near-ties
    noise = random_logits(200, 2000, spread=1e-7, seed=1)
    rows = [SamplingRow(Sampling(5, 0.8, top_p=0.95), i) for i in range(200)]
    same = np.equal(sample_ids(logits, rows), sample_ids(logits + noise, rows))

    assert same.mean() >= 0.99


def test_follows_the_distribution() -> None:
    """Over many indices of one seed each token comes as often as its probability says, within four deviations."""
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.0625, 0.0625]]).log()
    number = 4000
    rows = [SamplingRow(Sampling(11), i) for i in range(number)]
    counts = Counter(sample_ids(logits.expand(number, -1), rows))

    for token_id, probability in enumerate([0.5, 0.25, 0.125, 0.0625, 0.0625]):
        deviation = math.sqrt(number * probability * (1 - probability))
        assert abs(counts[token_id] - number * probability) < 4 * deviation


def test_uniform_is_pinned() -> None:
    """The numbers of a seed stay what they are, lie in [0, 1), and neighbouring seeds are unrelated."""
    numbers = np.array([[uniform(seed, index) for index in range(500)] for seed in (0, 1, 2**64 - 1)])

    # The published first outputs of SplitMix64 with seed 0, which mixing leaves at 0.
    assert [uniform(0, 0), uniform(0, 1)] == [
        (value >> 11) / 2**53 for value in (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4)
    ]
    assert uniform(2**64 - 1, 0) == 0.64635420864685
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert abs(np.corrcoef(numbers) - np.eye(3)).max() < 0.15
    assert abs(numbers.mean(axis=1) - 0.5).max() < 0.05


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_of_nonsense_fails_alone(bad: float, temperature: float) -> None:
    """NaN, an infinity or nothing finite is an error of that row; its neighbours get their tokens."""
    logits = random_logits(4, 100)
    logits[1, 42] = bad
    logits[2] = -math.inf
    results = sample(logits, [SamplingRow(Sampling(0, temperature), 0) for _ in range(4)])

    assert [isinstance(result, Sampled) for result in results] == [True, False, False, True]
    assert isinstance(results[1], EngineError)
    assert results[1].code is ErrorCode.INTERNAL


def test_masked_tokens_never_come() -> None:
    """A logit of minus infinity has no probability, even if all but one are masked and the temperature is high."""
    logits = torch.full((1, 1000), -math.inf)
    logits[0, 700] = -5.0

    for sampling in (Sampling(0, 100.0), Sampling(0, 2.0, top_k=10), Sampling(0, 1.0, top_p=0.99), Sampling(0, 0.0)):
        assert sample_ids(logits, [SamplingRow(sampling, 3)]) == [700]


def test_tokens_that_launches_go_on_with() -> None:
    """What has been launched tells the tokens as a tensor before they are waited for; a row that fails has any."""
    logits = random_logits(3, 100)
    logits[1] = math.nan
    pending = launch_sampling(logits, [SamplingRow(Sampling(0, 0.0), 0) for _ in range(3)])
    best = logits.argmax(-1).tolist()

    assert pending.token_ids.tolist()[::2] == best[::2]
    assert [isinstance(result, Sampled) for result in pending.wait()] == [True, False, True]


@pytest.mark.filterwarnings("error")  # of overflows
def test_extreme_temperatures() -> None:
    """A temperature near 0 is greedy, a huge one uniform, and neither is an error."""
    logits = random_logits(1, 300)

    for temperature in (1e-30, 1e-38, 1e-45):  # the last two have no inverse in float32
        row = SamplingRow(Sampling(0, temperature, top_p=0.9), 0)
        assert sample_ids(logits, [row]) == [int(logits.argmax())]
    assert len({sample_ids(logits, [SamplingRow(Sampling(0, 1e30), i)])[0] for i in range(200)}) > 100


def mask_of(token_ids: list[int], vocabulary_size: int) -> np.ndarray:
    """The bit mask that allows these tokens."""
    mask = np.zeros(-(-vocabulary_size // 32), dtype=np.uint32)
    for token_id in token_ids:
        mask[token_id // 32] |= np.uint32(1 << token_id % 32)
    return mask


@pytest.mark.parametrize("vocabulary_size", [7, 100, 49_152])
@pytest.mark.parametrize(
    "options", [{"temperature": 0.0}, {"temperature": 5.0}, {"top_k": 5}, {"top_p": 0.5}, {"min_p": 0.2}]
)
def test_a_mask_leaves_only_what_it_allows(vocabulary_size: int, options: dict[str, float]) -> None:
    """Sampling under a mask is sampling from logits of which the others are -inf, and the logits stay as they were."""
    logits = random_logits(8, vocabulary_size)
    kept = logits.clone()
    allowed = sorted({0, 3, vocabulary_size // 2, vocabulary_size - 1})
    mask = mask_of(allowed, vocabulary_size)
    rows = [SamplingRow(Sampling(seed=seed, **options), 0, mask=mask) for seed in range(8)]
    lowered = torch.full_like(logits, -math.inf)
    lowered[:, allowed] = logits[:, allowed]
    ids = sample_ids(logits, rows)

    assert set(ids) <= set(allowed)
    assert ids == sample_ids(lowered, [SamplingRow(row.sampling, 0) for row in rows])
    assert torch.equal(logits, kept)


def test_log_probabilities_under_a_mask() -> None:
    """Those of the allowed tokens add up to 1, and no other is reported."""
    (result,) = sample(random_logits(1, 100), [SamplingRow(Sampling(0), 0, None, 10, mask_of([5, 50, 99], 100))])

    assert isinstance(result, Sampled)
    assert result.logprobs is not None
    assert {each.token_id for each in result.logprobs.top} == {5, 50, 99}
    assert sum(math.exp(each.logprob) for each in result.logprobs.top) == pytest.approx(1)


def test_reports_log_probabilities() -> None:
    """They are of the distribution before temperature and filters and after penalties, the most likely first."""
    logits = random_logits(1, 500)
    sampling = Sampling(3, 2.0, top_k=400, logit_bias=((7, 20.0), (8, 19.0)))
    biased = logits[0].clone()
    biased[7] += 20
    biased[8] += 19
    expected = biased.double().log_softmax(-1)
    row = SamplingRow(sampling, 0, LogitsProcessor(sampling, []), num_logprobs=5)
    (result,) = sample(logits, [row])

    assert isinstance(result, Sampled)
    assert result.logprobs is not None
    assert result.logprobs.chosen.token_id == result.token_id
    assert result.logprobs.chosen.logprob == pytest.approx(float(expected[result.token_id]), abs=1e-5)
    assert [item.token_id for item in result.logprobs.top] == expected.topk(5).indices.tolist()
    assert [item.logprob for item in result.logprobs.top] == pytest.approx(expected.topk(5).values.tolist(), abs=1e-5)


def test_reports_only_the_chosen_one_if_none_is_asked_for() -> None:
    """Asking for 0 most likely tokens reports the chosen one; more than there are reports all."""
    logits = torch.tensor([[1.0, 1.0, 0.0]])
    none, all_of_them = sample(logits.expand(2, -1), [SamplingRow(Sampling(0, 0.0), 0, None, n) for n in (0, 20)])

    assert isinstance(none, Sampled)
    assert isinstance(all_of_them, Sampled)
    assert none.logprobs is not None
    assert none.logprobs.top == ()
    assert all_of_them.logprobs is not None
    assert [item.token_id for item in all_of_them.logprobs.top] == [0, 1, 2]
