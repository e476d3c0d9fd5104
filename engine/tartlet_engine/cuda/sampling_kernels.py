# Triton gives `jit` no types that mypy could see through.
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
"""The Triton kernel that chooses tokens: temperature, top-k, top-p and min-p, a program for each row.

It does what `sampler` does on the CPU, in the same order and with the same random numbers, without sorting. Top-k and
top-p both ask for the greatest threshold above which there is enough: tokens, or weight. It is found digit by digit in
the bits of the logits, which as whole numbers have the order of the logits. What is left keeps the order of the
vocabulary, and the running sum over it is inverted at the row's random number.

Sums are float32 within a block and float64 between blocks, in an order that depends on nothing but the vocabulary, so a
row gives the same token whatever stands beside it.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _distances(logits, greatest):
    """How many float32 numbers lie between each logit and the greatest: int64, 0 for the greatest itself."""
    bits = logits.to(tl.int32, bitcast=True)
    keys = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    greatest_bits = greatest.to(tl.int32, bitcast=True)
    greatest_key = greatest_bits ^ ((greatest_bits >> 31) & 0x7FFFFFFF)
    return greatest_key.to(tl.int64) - keys.to(tl.int64)


@triton.jit
def _weights(logits, greatest, temperature, min_p, distances, farthest):
    """The weight of each token that is kept, relative to the greatest; 0 for the others."""
    weights = tl.exp((logits - greatest) / temperature)
    return tl.where((distances <= farthest) & (weights >= min_p), weights, 0.0)


@triton.jit
def _farthest(
    row,
    vocabulary_size,
    greatest,
    temperature,
    limit,  # only tokens up to this distance count
    wanted,  # float64
    counts_tokens: tl.constexpr,  # each token counts 1; else its weight
    block: tl.constexpr,
):
    """The least distance up to which the tokens' counts or weights are together at least `wanted`."""
    digits = tl.arange(0, 16).to(tl.int64)
    found = tl.zeros([], tl.int64)
    for step in range(8):
        shift = 28 - 4 * step
        ends = found + ((digits + 1) << shift) - 1
        sums = tl.zeros([16], tl.float64)
        for start in range(0, vocabulary_size, block):
            ids = start + tl.arange(0, block)
            is_there = ids < vocabulary_size
            logits = tl.load(row + ids, mask=is_there, other=float("-inf"))
            distances = _distances(logits, greatest)
            is_counted = is_there & (distances <= limit)
            if counts_tokens:
                weights = tl.where(is_counted, 1.0, 0.0)
            else:
                weights = tl.where(is_counted, tl.exp((logits - greatest) / temperature), 0.0)
            inside = distances[:, None] <= ends[None, :]
            sums += tl.sum(tl.where(inside, weights[:, None], 0.0), 0).to(tl.float64)
        # The sums grow with the digit; if rounding keeps the last one below what is wanted, that is the one.
        digit = tl.minimum(tl.sum((sums < wanted).to(tl.int64), 0), 15)
        found += digit << shift
    return found


@triton.jit
def _total(row, vocabulary_size, greatest, temperature, min_p, limit, block: tl.constexpr):
    """The sum of the weights that are kept: float64."""
    total = tl.zeros([], tl.float64)
    for start in range(0, vocabulary_size, block):
        ids = start + tl.arange(0, block)
        logits = tl.load(row + ids, mask=ids < vocabulary_size, other=float("-inf"))
        weights = _weights(logits, greatest, temperature, min_p, _distances(logits, greatest), limit)
        total += tl.sum(tl.where(ids < vocabulary_size, weights, 0.0), 0).to(tl.float64)
    return total


@triton.jit
def _greatest(row, vocabulary_size, block: tl.constexpr):
    """The greatest logit and its id, the first of equal ones; NaN and its id, if there is one."""
    greatest = tl.full([], float("-inf"), tl.float32)
    greatest_id = tl.zeros([], tl.int64)
    first_nan = tl.zeros([], tl.int64) + vocabulary_size
    for start in range(0, vocabulary_size, block):
        ids = start + tl.arange(0, block)
        logits = tl.load(row + ids, mask=ids < vocabulary_size, other=float("-inf"))
        is_nan = logits != logits
        first_nan = tl.minimum(first_nan, tl.min(tl.where(is_nan, ids, vocabulary_size), 0).to(tl.int64))
        logits = tl.where(is_nan, float("-inf"), logits)
        block_greatest = tl.max(logits, 0)
        block_id = tl.min(tl.where((logits == block_greatest) & (ids < vocabulary_size), ids, vocabulary_size), 0)
        greatest_id = tl.where(block_greatest > greatest, block_id.to(tl.int64), greatest_id)
        greatest = tl.maximum(greatest, block_greatest)
    has_nan = first_nan < vocabulary_size
    return tl.where(has_nan, float("nan"), greatest), tl.where(has_nan, first_nan, greatest_id)


@triton.jit
def _invert(row, vocabulary_size, greatest, temperature, min_p, limit, target, block: tl.constexpr):
    """The id at which the running sum of the kept weights exceeds `target`; the last kept one if none does."""
    running = tl.zeros([], tl.float64)
    before = tl.zeros([], tl.float64)  # the running sum at the start of the block that is looked for
    chosen_start = tl.zeros([], tl.int32)
    is_found = tl.zeros([], tl.int1)
    for start in range(0, vocabulary_size, block):
        ids = start + tl.arange(0, block)
        logits = tl.load(row + ids, mask=ids < vocabulary_size, other=float("-inf"))
        weights = _weights(logits, greatest, temperature, min_p, _distances(logits, greatest), limit)
        block_sum = tl.sum(tl.where(ids < vocabulary_size, weights, 0.0), 0)
        takes = (not is_found) & (block_sum > 0)
        chosen_start = tl.where(takes, start, chosen_start)
        before = tl.where(takes, running, before)
        running += block_sum.to(tl.float64)
        is_found = is_found | (running > target)
    ids = chosen_start + tl.arange(0, block)
    logits = tl.load(row + ids, mask=ids < vocabulary_size, other=float("-inf"))
    weights = _weights(logits, greatest, temperature, min_p, _distances(logits, greatest), limit)
    weights = tl.where(ids < vocabulary_size, weights, 0.0)
    sums = tl.cumsum(weights, 0).to(tl.float64) + before
    is_kept = weights > 0
    chosen = tl.min(tl.where(is_kept & (sums > target), ids, vocabulary_size), 0)
    last = tl.max(tl.where(is_kept, ids, 0), 0)
    return tl.where(chosen < vocabulary_size, chosen, last).to(tl.int64)


@triton.jit
def sample_kernel(
    logits,  # float32[B, V], dense in the last; not written to
    temperatures,  # float32[B]; 0: the greatest logit
    top_ks,  # int64[B]; 0: all
    top_ps,  # float32[B]
    min_ps,  # float32[B]
    numbers,  # float64[B], uniform in [0, 1)
    token_ids,  # int64[B]: the token chosen, or the one with `bests` if that is not finite
    bests,  # float32[B]: the greatest logit, or NaN if there is one in the row
    logits_stride,
    vocabulary_size,
    block: tl.constexpr,
):
    """Choose a token for one row. Grid: B."""
    index = tl.program_id(0).to(tl.int64)
    row = logits + index * logits_stride
    greatest, chosen = _greatest(row, vocabulary_size, block)
    temperature = tl.load(temperatures + index)
    is_finite = tl.abs(greatest) < float("inf")
    if is_finite & (temperature > 0):
        top_k = tl.load(top_ks + index)
        top_p = tl.load(top_ps + index)
        min_p = tl.load(min_ps + index)
        limit = tl.zeros([], tl.int64) + 0xFFFFFFFF
        if (top_k > 0) & (top_k < vocabulary_size):
            limit = _farthest(row, vocabulary_size, greatest, temperature, limit, top_k.to(tl.float64), True, block)
        if top_p < 1:
            total = _total(row, vocabulary_size, greatest, temperature, 0.0, limit, block)
            limit = tl.minimum(
                limit,
                _farthest(row, vocabulary_size, greatest, temperature, limit, top_p * total, False, block),
            )
        total = _total(row, vocabulary_size, greatest, temperature, min_p, limit, block)
        target = tl.load(numbers + index) * total
        chosen = _invert(row, vocabulary_size, greatest, temperature, min_p, limit, target, block)
    tl.store(token_ids + index, chosen)
    tl.store(bests + index, greatest)
