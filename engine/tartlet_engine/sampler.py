"""The sampler: from rows of logits to tokens.

Each row is sampled by itself, from its own parameters, seed and position, so that what it gives does not depend on what
else is in the batch. Called by the engine's step. Rows are worked on with numpy on the CPU: at a vocabulary of some
50,000 its single-threaded loops take less time than handing the work to torch's threads does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tartlet_engine.api import EngineError, ErrorCode, PositionLogprobs, Sampling, TokenLogprob
from tartlet_engine.logits import LogitsProcessor

if TYPE_CHECKING:
    import torch

_Row = NDArray[np.float32]
_Ids = NDArray[np.int64]

# A row is looked at in blocks of this length first: for the chosen token by their sums, for top-k by their maxima.
_BLOCK_LEN = 256
# Weights, relative to the greatest, down to which top-p looks before it looks further.
_TOP_P_FLOORS = (2.0**-8, 2.0**-11, 2.0**-14, 2.0**-17, 0.0)
# More weights than this are not sorted as they are.
_MOST_SORTED = 1024
_BITS_OF_ONE = 0x3F80  # the leading 16 bits of 1.0 in float32
_MASK_64 = (1 << 64) - 1
LEAST_TEMPERATURE = 1e-30
"""What is below counts as this much: the most likely tokens alone are left, and nothing overflows."""


@dataclass(slots=True)
class SamplingRow:
    """How to sample one row."""

    sampling: Sampling
    token_index: int  # how many tokens the generation has got before
    processor: LogitsProcessor | None = None  # None if no penalty or bias is set
    num_logprobs: int | None = None  # how many most likely tokens to report; None for no report at all
    mask: NDArray[np.uint32] | None = (
        None  # allowed tokens, [ceil(V / 32)]: bit `id % 32` of word `id // 32`; None: all
    )


@dataclass(slots=True, frozen=True)
class Sampled:
    """The token that a row gave."""

    token_id: int
    logprobs: PositionLogprobs | None


class PendingTokens(Protocol):
    """Tokens that a device has been asked for."""

    @property
    def token_ids(self) -> torch.Tensor:
        """What each row gives, int64[B] on the device, for launches that follow; any token for a row that fails."""
        ...

    def wait(self) -> list[Sampled | EngineError]:
        """Wait for the device, and return what each row gave."""
        ...


@dataclass(slots=True, frozen=True)
class _Done:
    """Tokens that are there already."""

    results: list[Sampled | EngineError]

    @property
    def token_ids(self) -> torch.Tensor:
        import torch

        return torch.tensor([result.token_id if isinstance(result, Sampled) else 0 for result in self.results])

    def wait(self) -> list[Sampled | EngineError]:
        return self.results


def sample(logits: torch.Tensor, rows: Sequence[SamplingRow]) -> list[Sampled | EngineError]:
    """Choose a token for each row. A row without a finite greatest logit gives an error, which concerns it alone.

    Shape: `logits` is `float32[B, V]`, on any device, one row for each of `rows`; it is not written to.

    Cost: for V = 49,152 5 to 8 us for a greedy row and 50 to 170 us for a sampled one.
    """
    return launch_sampling(logits, rows).wait()


def launch_sampling(logits: torch.Tensor, rows: Sequence[SamplingRow]) -> PendingTokens:
    """Begin to do what `sample` does. On a GPU it does not wait for the device; on a CPU all is done on return."""
    if logits.is_cuda:
        from tartlet_engine.cuda import device_sampler  # needs Triton

        return device_sampler.launch_sampling(logits, rows)
    values = logits.detach().numpy()
    assert values.shape[:-1] == (len(rows),), (values.shape, len(rows))
    return _Done([_sample_row(row_values, row) for row_values, row in zip(values, rows, strict=True)])


def launch_sampling_each(logits: Sequence[torch.Tensor], rows: Sequence[SamplingRow]) -> PendingTokens:
    """Do what `launch_sampling` does, for rows float32[V] that do not lie together, at least one."""
    if logits[0].is_cuda:
        import torch

        return launch_sampling(torch.stack(list(logits)), rows)
    return _Done([_sample_row(values.detach().numpy(), row) for values, row in zip(logits, rows, strict=True)])


def uniform(seed: int, index: int) -> float:
    """Number `index` of the stream `seed`: uniform in [0, 1), 53 random bits, the same on every machine.

    Source: the output function and increment of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom
    number generators"), used as a counter: the seed is mixed first, so that near seeds give unrelated streams.
    """
    state = _mix_64(seed & _MASK_64) + (index + 1) * 0x9E3779B97F4A7C15
    return float(_mix_64(state & _MASK_64) >> 11) * 2.0**-53


def no_choice(best: np.float32, best_id: int) -> EngineError:
    """Return the error of a row whose greatest logit is not finite, or which holds a NaN."""
    return EngineError(
        ErrorCode.INTERNAL,
        f"the greatest logit is {best} at token {best_id}: there is nothing to choose a token by",
        "The model's weights or this generation's logit bias may hold extreme values",
    )


def _mix_64(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return value ^ (value >> 31)


def _sample_row(logits: _Row, row: SamplingRow) -> Sampled | EngineError:
    if row.processor is not None:
        logits = row.processor.apply(logits)
    if row.mask is not None:
        logits = _allowed(logits, row.mask)
    best_id = int(logits.argmax())  # the first NaN, if there is one
    best = logits[best_id]
    if not np.isfinite(best):
        return no_choice(best, best_id)
    sampling = row.sampling
    if sampling.temperature == 0:
        token_id = best_id
    else:
        token_id = _choose(logits, best, sampling, uniform(sampling.seed, row.token_index))
    if row.num_logprobs is None:
        return Sampled(token_id, None)
    return Sampled(token_id, _logprobs(logits, best, token_id, row.num_logprobs))


def _allowed(logits: _Row, mask: NDArray[np.uint32]) -> _Row:
    """Return the row with -inf for what the mask does not allow."""
    bits = np.unpackbits(mask.view(np.uint8), count=len(logits), bitorder="little")
    return np.where(bits.view(np.bool_), logits, np.float32(-np.inf))


def _choose(logits: _Row, best: np.float32, sampling: Sampling, number: float) -> int:
    """Choose by temperature, then top-k, top-p and min-p. `number` is uniform in [0, 1).

    What is left keeps the order of the vocabulary, not that of probability: rounding that swaps two nearly equal logits
    then moves a border by that rounding, and does not swap the tokens.
    """
    ids: _Ids | None = None  # None: all
    if 0 < sampling.top_k < len(logits):
        ids, logits = _keep(ids, logits, largest(logits, sampling.top_k))
    weights = logits - best
    weights /= np.float32(max(sampling.temperature, LEAST_TEMPERATURE))
    np.exp(weights, out=weights)  # the greatest is 1
    if sampling.top_p < 1:
        ids, weights = _keep(ids, weights, _top_p(weights, sampling.top_p))
    if sampling.min_p > 0:
        ids, weights = _keep(ids, weights, np.flatnonzero(weights >= sampling.min_p))
    position = _invert(weights, number)
    return position if ids is None else int(ids[position])


def _keep(ids: _Ids | None, values: _Row, positions: _Ids) -> tuple[_Ids, _Row]:
    """The ids and values at some positions."""
    return positions if ids is None else ids[positions], values[positions]


def _top_p(weights: _Row, top_p: float) -> _Ids:
    """Positions, ascending, of the fewest tokens, greatest first, whose share of all weights is at least `top_p`.

    Looks only at the weights above the first of a few floors that leaves enough of them. Tokens that equal the least
    of those wanted are kept.
    """
    wanted = top_p * float(_block_sums(weights)[-1])
    for floor in _TOP_P_FLOORS:
        ids = np.flatnonzero(weights >= floor)
        candidates = weights[ids]
        if candidates.sum(dtype=np.float64) >= wanted:
            break
    kept: _Ids = ids[candidates >= _least_wanted(candidates, wanted)]
    return kept


def _least_wanted(weights: _Row, wanted: float) -> np.float32:
    """The least of the fewest weights, greatest first, whose sum is at least `wanted`; the least of all if none is.

    Many weights are not sorted, which would take a millisecond for a flat distribution, but counted into bins by their
    leading bits, which have the order of the weights; then those of one bin are sorted.
    """
    if len(weights) > _MOST_SORTED:
        bins = _BITS_OF_ONE - (weights.view(np.int32) >> 16)  # the greatest weight is 1: no bin is below 0
        sums = np.cumsum(np.bincount(bins, weights))
        last_bin = min(int(np.searchsorted(sums, wanted)), len(sums) - 1)
        weights = weights[bins == last_bin]
        wanted -= float(sums[last_bin - 1]) if last_bin else 0.0
    ordered = np.sort(weights)[::-1]
    last = int(np.searchsorted(np.cumsum(ordered, dtype=np.float64), wanted))
    least: np.float32 = ordered[min(last, len(ordered) - 1)]
    return least


def _invert(weights: _Row, number: float) -> int:
    """The position at which the running sum of the weights exceeds `number` of their total.

    Looks for the block first and then inside it, which is several times faster than one running sum.
    """
    sums = _block_sums(weights)
    target = number * sums[-1]
    block = int(np.searchsorted(sums, target, side="right"))
    start = block * _BLOCK_LEN
    inside = weights[start : start + _BLOCK_LEN]
    before = sums[block - 1] if block else 0.0
    position = int(np.searchsorted(np.cumsum(inside, dtype=np.float64), target - before, side="right"))
    if position == len(inside):  # the block's own running sum was rounded down to less than the target
        position = int(np.flatnonzero(inside)[-1])
    return start + position


def _block_sums(weights: _Row) -> NDArray[np.float64]:
    """The running sum of the weights at the end of each block."""
    return np.cumsum(np.add.reduceat(weights, np.arange(0, len(weights), _BLOCK_LEN)), dtype=np.float64)


def largest(values: _Row, count: int) -> _Ids:
    """Positions of the `count` greatest values, ascending, and of all that equal the least of them.

    If there are at least `count` blocks, the `count` greatest of the blocks' maxima are a lower bound, which leaves few
    values to look at closely.
    """
    candidates: _Ids | None = None
    maxima = np.maximum.reduceat(values, np.arange(0, len(values), _BLOCK_LEN))
    if count <= len(maxima):
        candidates = np.flatnonzero(values >= np.partition(maxima, -count)[-count])
        values = values[candidates]
    kept = np.flatnonzero(values >= np.partition(values, -count)[-count])
    return kept if candidates is None else candidates[kept]


def _logprobs(logits: _Row, best: np.float32, token_id: int, count: int) -> PositionLogprobs:
    normaliser = float(best) + float(np.log(np.exp(logits - best).sum(dtype=np.float64)))
    top: tuple[TokenLogprob, ...] = ()
    if count > 0:
        ids = largest(logits, min(count, len(logits)))
        ids = ids[np.argsort(-logits[ids], kind="stable")][:count]
        top = tuple(
            TokenLogprob(int(top_id), float(logits[top_id]) - normaliser) for top_id in ids if logits[top_id] > -np.inf
        )
    return PositionLogprobs(TokenLogprob(token_id, float(logits[token_id]) - normaliser), top)
