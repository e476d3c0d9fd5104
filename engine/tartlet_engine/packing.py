"""Weight matrices in the layouts that the C kernels read: panels of 32 outputs, front to back.

`kernels/linear_dense.c` and `kernels/group_layout.h` draw the layouts. Outputs and inputs are padded with zeros to
multiples of 32. Weights are float32 here; what a format cannot hold exactly is rounded, as `rounded` tells.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import torch
import torch.nn.functional as F

PANEL_OUTPUTS = 32
GROUP_INPUTS = 32

# Of what this module and `llama_weights` make. To be raised when it changes: packed models lie in a cache on disk.
LAYOUT_VERSION = 1


class WeightFormat(enum.IntEnum):
    """How weights are held; the numbers are those of `tartlet_format` in kernels/interface.h."""

    FLOAT32 = 0
    BFLOAT16 = 1
    INT8 = 2  # groups of 32 inputs: -127 to 127 times a float16 scale
    INT4 = 3  # groups of 32 inputs: 0 to 15 times a float16 scale, plus a float16 minimum


GROUP_BYTES = {WeightFormat.INT8: 32 * 32 + 64, WeightFormat.INT4: 32 * 16 + 128}


@dataclass(frozen=True, slots=True, eq=False)
class PackedMatrix:
    """A matrix in panels. Its sizes are the padded ones."""

    format: WeightFormat
    num_outputs: int
    num_inputs: int
    panels: torch.Tensor  # uint8[bytes], on an address that is a multiple of 64
    rounding_error: float = 0.0  # of a quantised matrix: root mean square, relative to that of the weights


@dataclass(frozen=True, slots=True)
class Groups:
    """A matrix in whole numbers, with scales and minima for each group of 32 inputs."""

    numbers: torch.Tensor  # int32[N, K / 32, 32]
    scales: torch.Tensor  # float16[N, K / 32]
    minima: torch.Tensor | None  # float16[N, K / 32]

    def dequantize(self) -> torch.Tensor:
        """Return the weights that these numbers stand for, float32[N, K]."""
        weights = self.numbers * self.scales.float().unsqueeze(-1)
        if self.minima is not None:
            weights += self.minima.float().unsqueeze(-1)
        return weights.flatten(1)


def round_up(value: int, multiple: int) -> int:
    """Return the least multiple that is not below the value."""
    return -(-value // multiple) * multiple


def packed_bytes(weight_format: WeightFormat, num_outputs: int, num_inputs: int) -> int:
    """Return the bytes of a packed matrix, given its sizes without padding."""
    outputs, inputs = round_up(num_outputs, PANEL_OUTPUTS), round_up(num_inputs, GROUP_INPUTS)
    if weight_format in GROUP_BYTES:
        return outputs // PANEL_OUTPUTS * (inputs // GROUP_INPUTS) * GROUP_BYTES[weight_format]
    return outputs * inputs * (4 if weight_format is WeightFormat.FLOAT32 else 2)


def pack(weights: torch.Tensor, weight_format: WeightFormat) -> PackedMatrix:
    """Pack float32[N, K]. Cost: some 10 ns a weight in the formats with groups, 1 ns in the others."""
    num_outputs, num_inputs = weights.shape
    padded = F.pad(weights, (0, -num_inputs % GROUP_INPUTS, 0, -num_outputs % PANEL_OUTPUTS))
    if weight_format is WeightFormat.FLOAT32:
        panels = _dense_panels(padded, depth=1)
    elif weight_format is WeightFormat.BFLOAT16:
        panels = _dense_panels(padded.bfloat16(), depth=2)
    elif weight_format is WeightFormat.INT8:
        groups = quantize_int8(padded)
        panels = _int8_panels(groups)
    else:
        groups = quantize_int4(padded)
        panels = _int4_panels(groups)
    error = _rounding_error(padded, groups) if weight_format in GROUP_BYTES else 0.0
    return PackedMatrix(weight_format, padded.shape[0], padded.shape[1], panels, error)


def rounded(weights: torch.Tensor, weight_format: WeightFormat) -> torch.Tensor:
    """Return the values that `pack` makes of weights, float32[N, K]."""
    if weight_format is WeightFormat.FLOAT32:
        return weights
    if weight_format is WeightFormat.BFLOAT16:
        return weights.bfloat16().float()
    padded = F.pad(weights, (0, -weights.shape[1] % GROUP_INPUTS))
    groups = quantize_int8(padded) if weight_format is WeightFormat.INT8 else quantize_int4(padded)
    return groups.dequantize()[:, : weights.shape[1]]


def quantize_int8(weights: torch.Tensor) -> Groups:
    """Quantise float32[N, K] in groups of 32. Exact for weights that were quantised this way before (GGUF's Q8_0)."""
    grouped = weights.reshape(len(weights), -1, GROUP_INPUTS)
    scales = (grouped.abs().amax(-1) / 127).half()
    numbers = _divide(grouped, scales).round_().clamp_(-127, 127)
    return Groups(numbers.int(), scales, None)


def quantize_int4(weights: torch.Tensor) -> Groups:
    """Quantise float32[N, K] in groups of 32.

    Two ways are tried for each group, and the one with the smaller greatest error is kept: from the least to the
    greatest weight (exact for GGUF's Q4_1), and from -8 to 7 times a scale (exact for its Q4_0).
    """
    grouped = weights.reshape(len(weights), -1, GROUP_INPUTS)
    least, greatest = grouped.amin(-1), grouped.amax(-1)
    by_range = _int4_groups(grouped, ((greatest - least) / 15).half(), least.half())
    if torch.equal(by_range.dequantize(), weights):
        return by_range
    extreme = torch.where(greatest > -least, greatest, least)
    scales = (extreme / -8).half()  # negative if the extreme weight, which is number 0, is positive
    by_extreme = _int4_groups(grouped, scales, scales * -8)
    is_better = _greatest_error(by_extreme, grouped) < _greatest_error(by_range, grouped)
    assert by_range.minima is not None
    assert by_extreme.minima is not None
    return Groups(
        torch.where(is_better.unsqueeze(-1), by_extreme.numbers, by_range.numbers),
        torch.where(is_better, by_extreme.scales, by_range.scales),
        torch.where(is_better, by_extreme.minima, by_range.minima),
    )


def _rounding_error(weights: torch.Tensor, groups: Groups) -> float:
    size = float(weights.norm())
    return float(groups.dequantize().sub_(weights).norm()) / size if size else 0.0


def _int4_groups(grouped: torch.Tensor, scales: torch.Tensor, minima: torch.Tensor) -> Groups:
    numbers = _divide(grouped - minima.float().unsqueeze(-1), scales).round_().clamp_(0, 15)
    return Groups(numbers.int(), scales, minima)


def _divide(grouped: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Divide by the scales; a scale of zero gives zero."""
    factors = scales.float()
    return grouped * torch.where(factors != 0, 1 / factors, torch.zeros_like(factors)).unsqueeze(-1)


def _greatest_error(groups: Groups, grouped: torch.Tensor) -> torch.Tensor:
    return (groups.dequantize().view_as(grouped) - grouped).abs().amax(-1)


def _dense_panels(weights: torch.Tensor, depth: int) -> torch.Tensor:
    """Lay out as [panel][step][output 32][input of the step]."""
    num_outputs, num_inputs = weights.shape
    panels = weights.view(num_outputs // PANEL_OUTPUTS, PANEL_OUTPUTS, num_inputs // depth, depth)
    return panels.permute(0, 2, 1, 3).contiguous().view(torch.uint8).flatten()


def _int8_panels(groups: Groups) -> torch.Tensor:
    """Lay out each group as [half][pair][even or odd][output], then [half][output] scales."""
    num_outputs, num_groups, _ = groups.numbers.shape
    num_panels = num_outputs // PANEL_OUTPUTS
    numbers = groups.numbers.to(torch.int8).view(num_panels, 2, 16, num_groups, 16, 2)
    numbers = numbers.permute(0, 3, 1, 4, 5, 2).reshape(num_panels, num_groups, -1).view(torch.uint8)
    return torch.cat([numbers, _by_group(groups.scales)], dim=-1).flatten()


def _int4_panels(groups: Groups) -> torch.Tensor:
    """Lay out each group as [half][quad][output][even or odd] of four nibbles, then the scales, then the minima."""
    num_outputs, num_groups, _ = groups.numbers.shape
    num_panels = num_outputs // PANEL_OUTPUTS
    numbers = groups.numbers.view(num_panels, 2, 16, num_groups, 4, 4, 2)  # ... quad, pair of the quad, even or odd
    shifts = torch.tensor([1, 16, 256, 4096], dtype=torch.int32).view(4, 1)
    words = (numbers * shifts).sum(-2, dtype=torch.int32).to(torch.uint16)
    words = words.permute(0, 3, 1, 4, 2, 5).reshape(num_panels, num_groups, -1).view(torch.uint8)
    assert groups.minima is not None
    return torch.cat([words, _by_group(groups.scales), _by_group(groups.minima)], dim=-1).flatten()


def _by_group(values: torch.Tensor) -> torch.Tensor:
    """Lay float16[N, groups] out as bytes [panel, group, 64]."""
    num_outputs, num_groups = values.shape
    panels = values.view(num_outputs // PANEL_OUTPUTS, PANEL_OUTPUTS, num_groups).permute(0, 2, 1)
    return panels.contiguous().view(torch.uint8)
