"""Sampling where the logits are: launched without waiting for the device, and read when the host needs the tokens.

The same rules, order and random numbers as in `sampler`, for all rows at once. Sums are rounded in another order than
on the CPU, so a seed gives the same token on both unless its number falls within that rounding of a border.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tartlet_engine.api import EngineError, PositionLogprobs, TokenLogprob
from tartlet_engine.cuda.device_step import move_together
from tartlet_engine.cuda.sampling_kernels import sample_kernel
from tartlet_engine.logits import LogitsProcessor
from tartlet_engine.sampler import LEAST_TEMPERATURE, Sampled, SamplingRow, no_choice, uniform

_BLOCK = 1024  # logits that the kernel looks at together


@dataclass(frozen=True, slots=True)
class _Report:
    """Log-probabilities of the rows that asked for them, on the device."""

    rows: list[int]
    counts: list[int]
    chosen: torch.Tensor  # float32[N]
    top_ids: torch.Tensor  # int64[N, most]
    top: torch.Tensor  # float32[N, most]


class PendingTokens:
    """Tokens that the device has been asked for."""

    def __init__(self, token_ids: torch.Tensor, bests: torch.Tensor, report: _Report | None) -> None:
        """Begin to copy the results to the host, behind what the device has still to do."""
        self.token_ids = token_ids  # int64[B], on the device: what the next step may be launched with
        self._report = report
        parts = [token_ids, bests]
        if report is not None:
            parts += [report.chosen, report.top_ids, report.top]
        self._on_host = [_begin_copy(part) for part in parts]
        self._copied = None
        if token_ids.is_cuda:
            self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._copied.record(torch.cuda.current_stream(token_ids.device))

    def wait(self) -> list[Sampled | EngineError]:
        """Wait for the device, and return what each row gave."""
        if self._copied is not None:
            self._copied.synchronize()
        token_ids, bests = self._on_host[0].tolist(), self._on_host[1].numpy()
        logprobs = self._logprobs(token_ids)
        return [
            Sampled(token_id, logprobs.get(row)) if np.isfinite(best) else no_choice(best, token_id)
            for row, (token_id, best) in enumerate(zip(token_ids, bests, strict=True))
        ]

    def _logprobs(self, token_ids: Sequence[int]) -> dict[int, PositionLogprobs]:
        """Return what the rows that asked for it are told, by row."""
        if self._report is None:
            return {}
        chosen, top_ids, top = (tensor.tolist() for tensor in self._on_host[2:])
        told = {}
        for index, (row, count) in enumerate(zip(self._report.rows, self._report.counts, strict=True)):
            items = zip(top_ids[index][:count], top[index][:count], strict=True)
            allowed = ((token_id, logprob) for token_id, logprob in items if logprob > -math.inf)
            most_likely = tuple(TokenLogprob(token_id, logprob) for token_id, logprob in allowed)
            told[row] = PositionLogprobs(TokenLogprob(token_ids[row], chosen[index]), most_likely)
        return told


def launch_sampling(logits: torch.Tensor, rows: Sequence[SamplingRow]) -> PendingTokens:
    """Choose a token for each row, as `sampler.sample` does, without waiting for the device.

    Shape: `logits` is `float32[B, V]`, one row for each of `rows`; it is not written to.
    """
    num_rows, vocabulary_size = logits.shape
    assert num_rows == len(rows), (logits.shape, len(rows))
    logits = _allow(_process(logits, [row.processor for row in rows]), [row.mask for row in rows])
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    samplings = [row.sampling for row in rows]
    numbers = [uniform(row.sampling.seed, row.token_index) for row in rows]
    whole = torch.tensor([sampling.top_k for sampling in samplings])
    warm = [max(s.temperature, LEAST_TEMPERATURE) if s.temperature else 0.0 for s in samplings]
    rows_of = [[temperature, s.top_p, s.min_p] for temperature, s in zip(warm, samplings, strict=True)]
    parameters = torch.tensor(rows_of, dtype=torch.float32).T
    (top_ks,) = move_together([whole], logits.device)
    (temperatures, top_ps, min_ps) = move_together(list(parameters), logits.device)
    (device_numbers,) = move_together([torch.tensor(numbers, dtype=torch.float64)], logits.device)
    token_ids = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    bests = torch.empty(num_rows, dtype=torch.float32, device=logits.device)
    sample_kernel[(num_rows,)](
        logits,
        temperatures,
        top_ks,
        top_ps,
        min_ps,
        device_numbers,
        token_ids,
        bests,
        logits.stride(0),
        vocabulary_size,
        block=_BLOCK,
        num_warps=8,
    )
    return PendingTokens(token_ids, bests, _report(logits, rows, token_ids))


def _report(logits: torch.Tensor, rows: Sequence[SamplingRow], token_ids: torch.Tensor) -> _Report | None:
    """Compute the log-probabilities that rows asked for, on the device."""
    counts = {index: row.num_logprobs for index, row in enumerate(rows) if row.num_logprobs is not None}
    if not counts:
        return None
    (index,) = move_together([torch.tensor(list(counts))], logits.device)
    logprobs = logits[index].log_softmax(-1)
    most = min(max(counts.values()), logits.shape[1])
    top, top_ids = logprobs.topk(most)
    chosen = logprobs.gather(1, token_ids[index][:, None])[:, 0]
    return _Report(list(counts), [min(count, most) for count in counts.values()], chosen, top_ids, top)


def _process(logits: torch.Tensor, processors: Sequence[LogitsProcessor | None]) -> torch.Tensor:
    """Return the logits with all rows' penalties and bias applied: `LogitsProcessor.apply`, on the device."""
    numbered = [(row, processor) for row, processor in enumerate(processors) if processor is not None]
    if not numbered:
        return logits
    tables = [(row, processor.penalties(), processor.bias()) for row, processor in numbered]
    whole = [
        np.concatenate([np.full(len(table.token_ids), row) for row, table, _ in tables]),
        np.concatenate([table.token_ids for _, table, _ in tables]),
        np.concatenate([np.full(len(ids), row) for row, _, (ids, _) in tables]),
        np.concatenate([ids for _, _, (ids, _) in tables]),
    ]
    real = [
        np.concatenate([np.full(len(table.token_ids), table.repetition, np.float32) for _, table, _ in tables]),
        np.concatenate([table.subtracted for _, table, _ in tables]),
        np.concatenate([amounts for _, _, (_, amounts) in tables]),
    ]
    rows, ids, bias_rows, bias_ids = move_together([torch.from_numpy(part) for part in whole], logits.device)
    repetition, subtracted, amounts = move_together([torch.from_numpy(part) for part in real], logits.device)
    result = logits.clone()
    values = result[rows, ids]
    result[rows, ids] = torch.where(values > 0, values / repetition, values * repetition) - subtracted
    result[bias_rows, bias_ids] += amounts
    return result


def _allow(logits: torch.Tensor, masks: Sequence[NDArray[np.uint32] | None]) -> torch.Tensor:
    """Return the logits with -inf for what the rows' masks do not allow: `SamplingRow.mask`, on the device."""
    masked = [(row, mask) for row, mask in enumerate(masks) if mask is not None]
    if not masked:
        return logits
    words = torch.from_numpy(np.stack([mask for _, mask in masked]).view(np.int32))  # int32[N, ceil(V / 32)]
    (rows,) = move_together([torch.tensor([row for row, _ in masked])], logits.device)
    (words,) = move_together([words], logits.device)
    bits = torch.arange(32, dtype=torch.int32, device=logits.device)
    allowed = ((words[:, :, None] >> bits) & 1).bool().reshape(len(masked), -1)[:, : logits.shape[1]]
    result = logits.clone()
    result[rows] = result[rows].masked_fill(~allowed, -math.inf)
    return result


def _begin_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Begin to copy a tensor into the host's memory; on the host, return it as it is."""
    if not tensor.is_cuda:
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor, non_blocking=True)
